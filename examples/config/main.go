// Config keeps three policies under names, lets a file override them, and loads the file again when it changes, while
// calls are running.
//
//	go run ./examples/config
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// The policies of this program. Each call gets the current policy with search.Policy(), and does not keep it.
var (
	catalog retryconf.Catalog

	invoiceEmail = catalog.Define("invoice-email", retry.Policy{TTL: 24 * time.Hour})
	webhook      = catalog.Define("webhook", retry.Policy{AttemptTimeout: 30 * time.Second})
	search       = catalog.Define("search", retry.Policy{
		MaxAttempts:    3,
		Backoff:        retry.Backoff{Base: 5 * time.Millisecond, Cap: time.Second},
		AttemptTimeout: time.Second,
	})
)

// The document that the program starts with, the one that an operator puts in its place, and one with mistakes.
var (
	//go:embed policies.json
	first []byte

	changed = []byte(`{"defaults": {"attempt_timeout": "10s"}, "policies": {
		"invoice-email": {"extends": "standard", "max_attempts": 3},
		"search": {"max_attempts": 4, "base": "2ms", "factor": 3},
		"webhook": {"retries_enabled": false}
	}}`)
	mistaken = []byte(`{"defaults": {"ttl": 3600}, "policies": {
		"invoice-email": {"extends": "standart", "max_attempts": 0},
		"search": {"factr": 3},
		"serach": {"base": "2ms"}
	}}`)
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run loads the three documents, one after the other, and writes to w the policies in force after each.
func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "policies.json")
	if err := replace(path, first); err != nil {
		return err
	}
	if err := catalog.LoadFile(path); err != nil {
		return err // it names every mistake, also in the definitions: a service would not start
	}
	fmt.Fprintln(w, "Loaded:")
	inForce := show(w, nil)

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	gaveUp, loaded := make(chan int), make(chan error, 1)
	for _, ref := range []*retryconf.Ref{invoiceEmail, webhook} {
		running.Go(func() { callForever(ctx, ref, nil) })
	}
	for range 3 {
		running.Go(func() { callForever(ctx, search, gaveUp) })
	}
	running.Go(func() { watch(ctx, path, first, func(err error) { loaded <- err }) })
	showCall(w, gaveUp)

	for _, data := range [][]byte{changed, mistaken} {
		if err := replace(path, data); err != nil {
			return err
		}
		fmt.Fprintln(w, "\nThe file has changed:")
		var mistakes retry.FieldErrors
		errors.As(<-loaded, &mistakes)
		for _, mistake := range mistakes {
			fmt.Fprintln(w, "  refused:", mistake)
		}
		inForce = show(w, inForce)
		showCall(w, gaveUp)
	}
	return nil
}

// show writes a line for each changed policy: its source, its name and its schedule.
func show(w io.Writer, before []string) (lines []string) {
	same := 0
	for i, e := range catalog.All() {
		from := "code"
		if e.Loaded {
			from = "file"
		}
		lines = append(lines, fmt.Sprintf("  from %s  %v", from, e.Policy))
		if before != nil && lines[i] == before[i] {
			same++
		} else {
			fmt.Fprintln(w, lines[i])
		}
	}
	if same > 0 {
		fmt.Fprintf(w, "  %d of %d policies unchanged\n", same, len(lines))
	}
	return lines
}

// showCall waits for a call of search that began with the current policy; calls in progress end with the one before.
func showCall(w io.Writer, gaveUp <-chan int) {
	attempts := search.Policy().MaxAttempts
	for <-gaveUp != attempts {
	}
	fmt.Fprintf(w, "A call of search gave up after %d attempts.\n", attempts)
}

// callForever calls a server that is down, again and again until ctx ends, and sends the number of attempts of each
// call if gaveUp has a receiver.
func callForever(ctx context.Context, ref *retryconf.Ref, gaveUp chan<- int) {
	for ctx.Err() == nil {
		err := retry.Do(ctx, ref.Policy(), func(context.Context) error {
			return errors.New("the server is down")
		})
		var e *retry.Error
		if errors.As(err, &e) && ctx.Err() == nil {
			select {
			case gaveUp <- e.Attempts:
			default: // no receiver
			}
		}
	}
}

// watch loads the file each time its contents change, until ctx ends, and reports each result. Polling works on every
// file system; a signal or a notification would also do.
func watch(ctx context.Context, path string, last []byte, report func(error)) {
	ticker := time.NewTicker(10 * time.Millisecond) // seconds, for a service
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		data, err := os.ReadFile(path)
		if err != nil || bytes.Equal(data, last) {
			continue // a file that cannot be read changes nothing
		}
		last = data // a bad document is refused once, not at each tick
		report(catalog.Load(bytes.NewReader(data)))
	}
}

// replace gives the file new contents all at once, so that no reader sees half of them.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
