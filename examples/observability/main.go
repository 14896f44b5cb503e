// Observability makes calls that end in every way, and prints a service's telemetry of them: the metrics as Prometheus
// scrapes them, the traces as a tree, and the log. It needs no network: its server is on the loopback interface.
//
//	go run ./examples/observability
//
// It omits what differs from run to run: histogram buckets, the sums of durations, times and ports. With -raw the
// metrics are printed as they were scraped. The folder has a dashboard and alerts for these metrics.
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
	raw := flag.Bool("raw", false, "print the metrics as they were scraped, and nothing else")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *raw); err != nil {
		log.Fatal(err)
	}
}

// run makes the calls and writes their telemetry to w.
func run(ctx context.Context, w io.Writer, raw bool) error {
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
	if raw {
		_, err = io.WriteString(w, scraped)
		return err
	}
	_, err = fmt.Fprintf(w, "== Metrics\n%s\n== Traces\n%s\n== Log\n%s", stable(scraped), tree(t.spans.GetSpans()), t.log.String())
	return err
}
