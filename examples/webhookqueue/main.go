// Webhookqueue delivers events to a flaky receiver from a queue in a SQLite file. Its worker is a separate process,
// which it kills during a delivery and starts again. No delivery is lost. Then it replays the failed jobs. It needs no
// network, because its receiver is on the loopback interface. It takes half a minute, the time that River needs to
// notice that a worker is gone. With -keep it leaves its database, to look at with command retryjobs and its page:
//
//	go -C examples/webhookqueue run .
//	go -C examples/webhookqueue run . -keep /tmp/webhooks.db
//	retryjobs serve --database /tmp/webhooks.db
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry/retryjob"
)

func main() {
	keep := flag.String("keep", "", "the `file` that becomes the database and is left; it must not exist")
	flag.Parse()
	var err error
	if path := os.Getenv(workerVariable); path != "" {
		err = work(context.Background(), path)
	} else {
		err = run(context.Background(), os.Stdout, *keep)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run writes the story to w. The database is in the file keep, or is removed if that is empty.
func run(ctx context.Context, w io.Writer, keep string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
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
	defer q.db.Close()
	r := &receiver{held: make(chan struct{}), requests: map[string]int{}, handled: map[string]int{}}
	server := httptest.NewServer(r)
	defer server.Close()
	s := &story{ctx: ctx, w: w, queue: q, url: server.URL}

	s.say("A request with settings that the service cannot bear is refused, with all that is wrong with it:")
	s.post("wrong", `, "policy": "twice", "retry_policy": {"max_attempts": "many", "base": "10", "jiter": "full"}`)

	s.say("Four events are enqueued, the last one for two attempts, and a worker starts.")
	s.post("orders", "")
	s.post("flaky", "")
	s.post("gone", "")
	s.post("down", `, "retry_policy": {"max_attempts": 2}`)
	worker, _, err := startWorker(ctx, path)
	if err != nil {
		return err
	}
	s.show(q.Wait, "orders", "flaky", "gone", "down")

	s.say("The worker is killed while it waits for an answer. One more event is enqueued while no worker runs.")
	s.post("slow", "")
	select {
	case <-r.held: // it has handled the event, but does not answer
	case <-ctx.Done():
	}
	s.fail(worker.Process.Kill()) // like a machine that fails
	_ = worker.Wait()             // "signal: killed"
	s.post("next", "")
	s.show(q.Get, "slow", "next")

	s.say("A worker starts again. In time River notices which delivery was lost.")
	_, stop, err := startWorker(ctx, path)
	if err != nil {
		return err
	}
	s.show(q.Wait, "next", "slow")

	s.say("A receiver is mended, and its event replayed.")
	r.mended.Store(true)
	s.fail(q.Replay(ctx, "down"))
	s.show(q.Wait, "down")
	s.fail(stop())

	s.say("The requests for each event, and how often it was handled:")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.requests)) {
		s.say(fmt.Sprintf("  %-6s  %d  %d", id, r.requests[id], r.handled[id]))
	}
	return s.err
}

// story writes the events, until one fails.
type story struct {
	ctx   context.Context
	w     io.Writer
	queue *queue
	url   string // of the receiver
	err   error  // the first one
}

func (s *story) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *story) say(line string) {
	if s.err == nil {
		fmt.Fprintln(s.w, line)
	}
}

// post enqueues an event for the path /id of the receiver, with its own settings as JSON, or writes the faults of the
// settings.
func (s *story) post(id, settings string) {
	job, faults := parse(fmt.Appendf(nil, `{"id": %q, "tenant": "acme", "url": "%s/%s", "event": "order.placed"%s}`, id, s.url, id, settings))
	for _, f := range faults {
		s.say(fmt.Sprintf("  %s %s %s", f.Field, f.Value, f.Rule))
	}
	if len(faults) == 0 {
		_, err := s.queue.Enqueue(s.ctx, job)
		s.fail(err)
	}
}

// show writes a line for each event, as get returns it. get returns it now, or once its status is final.
func (s *story) show(get func(ctx context.Context, id string) (retryjob.Info, error), ids ...string) {
	for _, id := range ids {
		info, err := get(s.ctx, id)
		s.line(info, err)
	}
}

// line writes the status of an event, and the results of its attempts.
func (s *story) line(info retryjob.Info, err error) {
	s.fail(err)
	var results []string
	for _, a := range info.History {
		results = append(results, fmt.Sprint(a.Number, " ", cmp.Or(a.Code, a.Err, a.Status.String())))
	}
	status := info.Status.String()
	if info.Reason != 0 {
		status += " (" + info.Reason.Error() + ")"
	}
	s.say(strings.TrimRight(fmt.Sprintf("  %-6s  %s: %s", info.JobID, status, strings.Join(results, ", ")), ": "))
}

// receiver is the user's server. It fails in a different way on each path.
type receiver struct {
	held     chan struct{} // closed when /slow keeps a request waiting
	mended   atomic.Bool   // /down is
	mu       sync.Mutex
	requests map[string]int // by event
	handled  map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	id := strings.Trim(req.Header.Get("Idempotency-Key"), `"`)
	r.mu.Lock()
	r.requests[id]++
	requests := r.requests[id]
	fails := req.URL.Path == "/gone" || req.URL.Path == "/flaky" && requests < 3 || req.URL.Path == "/down" && !r.mended.Load()
	if !fails {
		r.handled[id] = 1 // once, however often it is asked
	}
	r.mu.Unlock()
	switch {
	case req.URL.Path == "/gone":
		w.WriteHeader(http.StatusGone)
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case req.URL.Path == "/slow" && requests == 1:
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, req.Body, 1<<20)) // only then does the server notice that the client has gone
		close(r.held)
		<-req.Context().Done()
	}
}
