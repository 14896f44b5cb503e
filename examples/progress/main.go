// Command progress reads a feed over connections that break off. A run that marks the errors of attempts which have read
// something goes on as long as the feed does. If it does not, the last attempt reads a copy of the feed. The feed is a
// fake in the same process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/retrygo/retry"
)

func main() {
	for _, c := range cases {
		if err := c.run(context.Background(), os.Stdout); err != nil {
			log.Fatal(err)
		}
	}
}

var policy = retry.Policy{
	MaxAttempts: 3, // without progress
	Backoff:     retry.Backoff{Base: 100 * time.Millisecond},
	TTL:         time.Minute, // bounds a run of which each attempt reads one line
}

// example is a run with a mark for the errors of attempts that have read something.
type example struct {
	name string
	mark func(error) error
	feed []int // how many lines each connection delivers before it breaks off, 0 if it is refused
}

var cases = []example{
	{"Without a mark every broken connection counts", func(err error) error { return err }, []int{4, 3, 2, 3}},
	{"With Progressed the count begins anew", retry.Progressed, []int{4, 3, 2, 3}},
	{"The last attempt reads the copy", retry.Progressed, []int{4, 3, 0, 0}},
}

// run reads the feed and writes a line for each attempt.
func (c example) run(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, c.name+":")
	began := time.Now()
	read := 0
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		var n int
		var err error
		source := "feed"
		if retry.LastAttempt(ctx) {
			source = "copy"
			n = readCopy(read)
		} else {
			n, err = readFeed(c.feed[retry.AttemptNumber(ctx)-1], read)
		}
		read += n
		result := "complete"
		if err != nil {
			result = err.Error()
		}
		fmt.Fprintf(w, "  %-6v attempt %d, %s  %2d of %d lines, %s\n", time.Since(began).Round(10*time.Millisecond),
			retry.AttemptNumber(ctx), source, read, lines, result)
		if n > 0 {
			return c.mark(err)
		}
		return err
	})
}

const lines = 12

var (
	errReset   = errors.New("connection reset")
	errRefused = errors.New("connection refused")
)

// readFeed returns how many lines it has read after the given number of lines, over a connection that delivers the most.
func readFeed(most, after int) (int, error) {
	switch {
	case most == 0:
		return 0, errRefused
	case after+most < lines:
		return most, errReset
	default:
		return lines - after, nil
	}
}

// readCopy is readFeed from a copy, which is complete and slow.
func readCopy(after int) int {
	time.Sleep(500 * time.Millisecond)
	return lines - after
}
