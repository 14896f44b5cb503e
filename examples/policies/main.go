// Policies is a catalog of policies to start from, with the reason for every number and with what each does to the
// backend of a stated fleet. Its README.md is written by it:
//
//	go run ./examples/policies -w examples/policies/README.md
package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"log"
	"os"
	"os/signal"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

//go:generate go run . -w README.md

// document holds what of the policies is data. A program of yours would read it as a file, and again when it changes.
//
//go:embed policies.json
var document []byte

func main() {
	log.SetFlags(0)
	path := flag.String("w", "", "write the page to this `file` rather than to standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *path); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	var text bytes.Buffer
	if err := page(ctx, &text); err != nil {
		return err
	}
	if path == "" {
		_, err := os.Stdout.Write(text.Bytes())
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// load defines the policies, whose budgets are code, and loads the document.
func load() (map[string]retry.Policy, error) {
	var catalog retryconf.Catalog
	for _, p := range policies() {
		var defined retry.Policy
		if p.budget != nil {
			defined.Budget = retry.NewBudget(*p.budget)
		}
		catalog.Define(p.name, defined)
	}
	if err := catalog.Load(bytes.NewReader(document)); err != nil {
		return nil, err
	}
	loaded := map[string]retry.Policy{}
	for _, e := range catalog.All() {
		loaded[e.Name] = e.Policy
	}
	return loaded, nil
}
