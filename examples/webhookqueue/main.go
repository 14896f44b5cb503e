// Webhookqueue delivers events to a flaky receiver from a queue in a SQLite file. Its worker is a separate process,
// which it kills during a delivery and starts again: nothing is lost. Then it replays the failed jobs. It needs no
// network: its receiver is on the loopback interface. It takes half a minute, the time that River needs to notice that
// a worker is gone.
//
//	go -C examples/webhookqueue run .
//
// With -keep it leaves its database, to look at with command retryjobs and its page:
//
//	go -C examples/webhookqueue run . -keep /tmp/webhooks.db
//	retryjobs serve --database /tmp/webhooks.db
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/retrygo/retry/retryjob"
)

func main() {
	ctx := context.Background()
	if path := os.Getenv(workerVariable); path != "" {
		if err := work(ctx, path); err != nil {
			log.Fatal(err)
		}
		return
	}
	keep := flag.String("keep", "", "the `file` that becomes the database and is left; it must not exist")
	flag.Parse()
	if err := run(ctx, os.Stdout, *keep); err != nil {
		log.Fatal(err)
	}
}

// run writes the story to w. The database is in the file keep, or is removed if that is empty.
func run(ctx context.Context, w io.Writer, keep string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	path := keep
	if path == "" {
		dir, err := os.MkdirTemp("", "webhookqueue")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "webhooks.db")
	} else if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("-keep %s: the file exists already, or cannot be looked up: %v", path, err)
	}
	q, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer q.close()
	receiver := newReceiver()
	server := httptest.NewServer(receiver)
	defer server.Close()
	deliveries := httptest.NewServer(intake{q})
	defer deliveries.Close()
	s := &story{w: w, queue: q, receiver: receiver, url: server.URL, intake: deliveries.URL, path: path}
	defer func() { _ = s.worker.stop() }() // after an error
	for _, chapter := range []func(context.Context) error{s.refuse, s.deliver, s.crash, s.recover, s.list, s.replay} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return s.conclude(ctx)
}

// story runs the chapters in order.
type story struct {
	w        io.Writer
	queue    *queue
	receiver *receiver
	url      string // of the receiver
	intake   string // its URL
	path     string // of the database
	worker   *process
	events   []string // as they were enqueued
}

func (s *story) refuse(ctx context.Context) error {
	fmt.Fprintln(s.w, "A request with settings that the service cannot bear is refused, with all that is wrong with it:")
	status, faults, err := s.post(ctx, fmt.Sprintf(`{"id": "evt_0", "tenant": "acme", "url": "%s/orders", "policy": "twice", "ttl": "90",
		"retry_policy": {"max_attempts": "many", "base": "10", "jiter": "full"}}`, s.url))
	if err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Fprintf(s.w, "  %d  %s %s %s\n", status, f.Field, f.Value, f.Rule)
	}
	return nil
}

func (s *story) deliver(ctx context.Context) (err error) {
	fmt.Fprintln(s.w, "Four events are enqueued, the last one for two attempts within a minute, and a worker starts.")
	for _, event := range [][2]string{{"/orders"}, {"/flaky"}, {"/gone"}, {"/down", `, "retry_policy": {"max_attempts": 2}, "ttl": "1m"`}} {
		if err := s.enqueue(ctx, event[0], event[1]); err != nil {
			return err
		}
	}
	if s.worker, err = startWorker(s.path); err != nil {
		return err
	}
	return s.await(ctx, "evt_1", "evt_2", "evt_3", "evt_4")
}

func (s *story) crash(ctx context.Context) error {
	fmt.Fprintln(s.w, "The worker is killed while it waits for /slow to answer. One more event is enqueued while no worker runs.")
	if err := s.enqueue(ctx, "/slow", ""); err != nil {
		return err
	}
	select {
	case <-s.receiver.held: // it has handled the event, but does not answer
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.worker.kill(); err != nil {
		return err
	}
	if err := s.enqueue(ctx, "/orders", ""); err != nil {
		return err
	}
	return s.tell(ctx, "evt_5", "evt_6")
}

func (s *story) recover(ctx context.Context) (err error) {
	fmt.Fprintln(s.w, "A worker starts again. In time River notices which delivery was lost.")
	if s.worker, err = startWorker(s.path); err != nil {
		return err
	}
	return s.await(ctx, "evt_6", "evt_5")
}

func (s *story) list(ctx context.Context) error {
	fmt.Fprintln(s.w, "The dead letters:")
	for info, err := range s.queue.List(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}}) {
		if err != nil {
			return err
		}
		s.line(info)
	}
	return nil
}

func (s *story) replay(ctx context.Context) error {
	fmt.Fprintln(s.w, "/down is mended, and its event replayed.")
	s.receiver.mend()
	if err := s.queue.Replay(ctx, "evt_4"); err != nil {
		return err
	}
	if err := s.await(ctx, "evt_4"); err != nil {
		return err
	}
	return s.worker.stop()
}

// conclude writes the table of all events.
func (s *story) conclude(ctx context.Context) error {
	fmt.Fprintln(s.w)
	table := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "EVENT\tTO\tSTATUS\tREASON\tREPLAYS\tATTEMPTS\tREQUESTS\tHANDLED")
	for _, id := range s.events {
		info, err := s.queue.Get(ctx, id)
		if err != nil {
			return err
		}
		requests, handled := s.receiver.count(id)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n",
			id, s.target(info), info.Status, info.Reason, info.Replays, info.Attempts, requests, handled)
	}
	return table.Flush()
}

// enqueue posts the next event for a path of the receiver, with its own settings as JSON.
func (s *story) enqueue(ctx context.Context, path, settings string) error {
	id := fmt.Sprintf("evt_%d", len(s.events)+1) // the event's own, so it cannot be enqueued twice
	s.events = append(s.events, id)
	status, faults, err := s.post(ctx, fmt.Sprintf(`{"id": %q, "tenant": "acme", "url": %q, "event": "order.placed"%s}`, id, s.url+path, settings))
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("%s is refused: %v", id, faults)
	}
	return err
}

// post posts a request to the intake.
func (s *story) post(ctx context.Context, body string) (status int, faults []fault, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.intake, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	var refusal struct{ Errors []fault }
	err = json.NewDecoder(resp.Body).Decode(&refusal)
	return resp.StatusCode, refusal.Errors, err
}

// await reports each event once its status is final.
func (s *story) await(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		info, err := s.queue.Wait(ctx, id)
		if err != nil {
			return fmt.Errorf("waiting for %s, which is %s: %w", id, info.Status, err)
		}
		s.line(info)
	}
	return nil
}

// tell reports the current state of each event.
func (s *story) tell(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		info, err := s.queue.Get(ctx, id)
		if err != nil {
			return err
		}
		s.line(info)
	}
	return nil
}

// line writes the status of an event, and the results of its attempts.
func (s *story) line(info retryjob.Info) {
	fmt.Fprintf(s.w, "  %s  %-7s  %s", info.JobID, s.target(info), info.Status)
	if info.Reason != 0 {
		fmt.Fprintf(s.w, " (%s)", info.Reason)
	}
	separator := ": "
	for _, a := range info.History {
		fmt.Fprintf(s.w, "%s%d %s", separator, a.Number, result(a))
		separator = ", "
	}
	fmt.Fprintln(s.w)
}

// result is the result of an attempt in a word.
func result(a retryjob.Attempt) string {
	switch {
	case a.Code != "":
		return a.Code
	case a.Err == retryjob.ErrLost.Error():
		return "lost"
	case a.Status == retryjob.Leased:
		return "under way"
	default:
		return "ok"
	}
}

// target is the path to which an event goes.
func (s *story) target(info retryjob.Info) string {
	var d delivery
	if err := json.Unmarshal(info.Payload, &d); err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(d.URL, s.url)
}
