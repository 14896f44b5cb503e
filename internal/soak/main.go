// Soak is a small shop of five services, each a process of its own, that are wired as the READMEs of this repository
// say. Its test makes all of them fail at once and then checks what must hold: see README.md.
//
//	soak SERVICE
//
// SERVICE is shop, orders, stock, prices, mail or outbox. The settings are environment variables; see config.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/retrygo/retry"
)

// config has the settings of a service: addresses as host:port, and paths of files.
type config struct {
	listen, debug                       string // what it serves, and the address for questions about the process itself
	orders, stock, mail, prices, spare  string // the services that it calls; spare is the second replica of prices
	database, catalog, journal, release string // release is the version of the export
}

func fromEnvironment() config {
	e := func(name string) string { return os.Getenv("SOAK_" + name) }
	return config{
		listen: e("LISTEN"), debug: e("DEBUG"),
		orders: e("ORDERS"), stock: e("STOCK"), mail: e("MAIL"), prices: e("PRICES"), spare: e("SPARE"),
		database: e("DATABASE"), catalog: e("CATALOG"), journal: e("JOURNAL"), release: e("RELEASE"),
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: soak SERVICE")
	}
	if err := run(os.Args[1], fromEnvironment()); err != nil {
		log.Fatalf("soak: %s: %v", os.Args[1], err)
	}
}

// service is what the services have in common.
type service struct {
	config
	name     string
	journal  *journal
	policies policies
	idle     []func() // each closes connections that are not in use
}

// run runs a service until its standard input ends.
func run(name string, c config) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &service{config: c, name: name}
	var err error
	if s.journal, err = openJournal(c.journal, name); err != nil {
		return err
	}
	defer s.journal.close()
	begin, known := map[string]func(context.Context) (func(), error){
		"shop": s.shop, "orders": s.orderService, "stock": s.stockService, "prices": s.priceService, "mail": s.mailService, "outbox": s.outboxService,
	}[name]
	if !known {
		return fmt.Errorf("there is no service %q", name)
	}
	s.policies.define(s.journal)
	if err := retry.Do(ctx, startPolicy, func(context.Context) error { return s.policies.load(c.catalog) }); err != nil {
		return err
	}
	go s.policies.follow(ctx, c.catalog, s.journal)

	stop, err := begin(ctx)
	if err != nil {
		return err
	}
	stopDebug, err := serveHTTP(c.debug, s.debugHandler())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	stopDebug()
	s.journal.add(line{What: "stopped"})
	return nil
}

// patience is how long a service that stops waits for the work under way.
const patience = 12 * time.Second

// serveHTTP serves on addr until stop is called.
func serveHTTP(addr string, handler http.Handler) (stop func(), err error) {
	listener, err := listen(addr)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx)
	}, nil
}

// serveGRPC serves on addr until stop is called.
func serveGRPC(addr string, server *grpc.Server) (stop func(), err error) {
	listener, err := listen(addr)
	if err != nil {
		return nil, err
	}
	go func() { _ = server.Serve(listener) }()
	return server.GracefulStop, nil
}

// listen waits for the address of a predecessor that was killed.
func listen(addr string) (net.Listener, error) {
	return retry.DoValue(context.Background(), startPolicy, func(context.Context) (net.Listener, error) {
		return net.Listen("tcp", addr)
	})
}

// startPolicy is that of a service that starts before what it needs.
var startPolicy = retry.Policy{
	Name: "start", MaxAttempts: retry.Unlimited, TTL: time.Minute,
	Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
}
