// Config keeps three policies under names, lets a file override them, and loads the file again when it changes.
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

	_      = catalog.Define("invoice-email", retry.Policy{TTL: 24 * time.Hour})
	_      = catalog.Define("webhook", retry.Policy{AttemptTimeout: 30 * time.Second})
	search = catalog.Define("search", retry.Policy{
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
		return err // it names every mistake, also in the definitions, so a service would not start
	}
	fmt.Fprintln(w, "Loaded:")
	show(w)

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	loaded := make(chan error, 1)
	running.Go(func() { watch(ctx, path, first, loaded) })
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
		show(w)
	}
	return nil
}

// show writes the source, the name and the schedule of each policy, and the attempts of a call with one of them.
func show(w io.Writer) {
	for _, e := range catalog.All() {
		from := "code"
		if e.Loaded {
			from = "file"
		}
		fmt.Fprintf(w, "  from %s  %v\n", from, e.Policy)
	}
	attempts := 0
	_ = retry.Do(context.Background(), search.Policy(), func(context.Context) error {
		attempts++
		return errors.New("the server is down")
	})
	fmt.Fprintf(w, "A call of search gave up after %d attempts.\n", attempts)
}

// watch loads the file each time its contents change, until ctx ends, and sends each result. Polling works on every
// file system, but a signal or a notification would also do.
func watch(ctx context.Context, path string, last []byte, loaded chan<- error) {
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
			continue // a file that cannot be read is no change
		}
		last = data // a bad document is refused once, not at each tick
		loaded <- catalog.Load(bytes.NewReader(data))
	}
}

// replace gives the file new contents all at once, so that no reader sees half of them.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
