// Observability makes calls that end in every way, and prints a service's telemetry of them. It prints the metrics as
// Prometheus scrapes them, the traces as a tree, and the log. It needs no network, because its server is on the
// loopback interface.
//
//	go run ./examples/observability
//	go run ./examples/observability -page localhost:8080
//
// It omits the parts that differ from run to run, such as histogram buckets, the sums of durations, times and ports.
// The folder has a dashboard and alerts for these metrics. With -page it serves the page of package retrydebug instead,
// while calls go on.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
)

func main() {
	page := flag.String("page", "", "serve /debug/retry/ on this `address`")
	flag.Parse()
	var err error
	if *page == "" {
		err = run(context.Background(), os.Stdout)
	} else {
		err = servePage(context.Background(), *page, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run makes the calls and writes their telemetry to w.
func run(ctx context.Context, w io.Writer) error {
	t, err := newTelemetry()
	if err != nil {
		return err
	}
	defer t.close()
	if err := makeCalls(ctx, t); err != nil {
		return err
	}
	scraped, err := t.scrape(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "== Metrics\n%s\n== Traces\n%s\n== Log\n%s", stable(scraped), tree(t.spans.GetSpans()), t.log.String())
	return err
}
