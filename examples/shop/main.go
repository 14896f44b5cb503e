// Shop is a small shop of five services, each a process of its own, that are wired by the READMEs of this repository.
// Its test makes all of them fail at once and then checks its invariants (see README.md).
//
//	shop SERVICE
//
// SERVICE is shop, orders, stock, prices, mail or outbox. The settings are environment variables (see setting).
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

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retrydebug"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: shop SERVICE")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatalf("shop: %s: %v", os.Args[1], err)
	}
}

// setting returns the environment variable SHOP_ and name. LISTEN and METRICS are the addresses that a service serves,
// ORDERS, STOCK, MAIL, PRICES and SPARE, the second replica of prices, those that it calls, all as host:port. CATALOG and
// JOURNAL are files, DATABASE is a URL or a file, and RELEASE the version of the export.
func setting(name string) string { return os.Getenv("SHOP_" + name) }

// service is the part that the services have in common.
type service struct {
	journal  *journal
	policies policies
	live     *retrydebug.Page
}

// run runs a service until its standard input ends.
func run(name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &service{}
	begin, known := map[string]func(context.Context) (func(), error){
		"shop": s.shop, "orders": s.orderService, "stock": s.stockService, "prices": s.priceService, "mail": s.mailService, "outbox": s.outboxService,
	}[name]
	if !known {
		return fmt.Errorf("there is no service %q", name)
	}
	var err error
	if s.journal, err = openJournal(setting("JOURNAL"), name); err != nil {
		return err
	}
	measured, err := newMetrics()
	if err != nil {
		return err
	}
	s.live = retrydebug.New(retrydebug.Options{Name: name, Catalog: s.policies.catalog.All})
	for name, b := range s.policies.define(retry.Observers(s.journal.observe, measured.observe, s.live.Observe)) {
		if _, err := retryotel.ObserveBudget(measured.options, name, b); err != nil {
			return err
		}
	}
	err = retry.Do(ctx, startPolicy, func(context.Context) error { return s.policies.catalog.LoadFile(setting("CATALOG")) })
	if err != nil {
		return err
	}
	go s.policies.follow(setting("CATALOG"), s.journal)

	stop, err := begin(ctx)
	if err != nil {
		return err
	}
	operators := http.NewServeMux()
	operators.Handle("/debug/retry/", s.live)
	operators.Handle("/", measured.handler)
	stopMetrics, err := serve(setting("METRICS"), operators)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	stopMetrics()
	s.journal.add(line{What: "stopped"}, nil)
	return nil
}

// patience is how long a service that stops waits for the work under way.
const patience = 12 * time.Second

// serve serves HTTP on addr until stop is called.
func serve(addr string, handler http.Handler) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx)
	}, nil
}

// startPolicy is the policy of a service that starts before the servers that it needs.
var startPolicy = retry.Policy{
	Name: "start", MaxAttempts: retry.Unlimited, TTL: time.Minute,
	Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
}
