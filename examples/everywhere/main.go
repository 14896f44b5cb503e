// Command everywhere uses one policy in six libraries, with a few lines each, and prints their waits. Every server is on
// loopback or in this process.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/retrygo/retry"
)

var policy = retry.Policy{
	Name:        "everywhere",
	MaxAttempts: 3,
	Backoff:     retry.Backoff{Base: 40 * time.Millisecond, Cap: time.Second, Jitter: retry.EqualJitter},
	Rand:        func() float64 { return 0.5 }, // so that every run is alike, while nil means math/rand/v2
}

// A library makes attempts that fail until it gives up, records each, and calls delay for the waits. In your own
// program delay is policy.DrawDelay.
type library struct {
	name string
	run  func(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error
}

var libraries = []library{
	{"franz-go", franz},
	{"JetStream", jetStream},
	{"asynq", queue},
	{"elastic-transport", elastic},
	{"resty", restyV2},
	{"rueidis", reads},
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, policy)
	for _, l := range libraries {
		var r record
		if err := l.run(ctx, r.delay, r.note); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		r.write(w, l.name)
	}
	return nil
}

// record holds the calls and attempts of a library.
type record struct {
	mu   sync.Mutex
	said []time.Duration
	at   []time.Time
}

func (r *record) delay(attempt int) time.Duration {
	d := policy.DrawDelay(attempt)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, d)
	return d
}

// note records an attempt and reports whether it is the last that the policy allows.
func (r *record) note() (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
	return len(r.at) == policy.MaxAttempts
}

func (r *record) write(w io.Writer, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range r.said {
		fmt.Fprintf(w, "%-17s  attempt %d: the policy says %v", name, i+1, d)
		if i+1 < len(r.at) {
			fmt.Fprintf(w, ", waited %v", r.at[i+1].Sub(r.at[i]).Round(time.Millisecond))
		}
		fmt.Fprintln(w)
	}
}
