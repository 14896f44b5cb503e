//go:build js

// Command wasm is package page as WebAssembly, for the static form of the page: retryplan page builds it.
package main

import (
	"context"
	"encoding/json"
	"syscall/js"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
)

// limit is how long a simulation may take: longer than in the server, since WebAssembly is slower.
const limit = 6 * time.Second

// main defines the function retryplan(question, done), which calls done(ok, answer) later and returns a function that
// ends the simulation. Question and answer are JSON.
func main() {
	js.Global().Set("retryplan", js.FuncOf(func(_ js.Value, args []js.Value) any {
		ctx, stop := context.WithCancel(context.Background())
		question, done := args[0].String(), args[1]
		end := js.FuncOf(func(js.Value, []js.Value) any {
			stop()
			return nil
		})
		go func() {
			defer stop()
			ok, body := answer(ctx, question)
			done.Invoke(ok, body)
		}()
		return end
	}))
	select {}
}

func answer(ctx context.Context, text string) (ok bool, body string) {
	q := page.Question{Limit: limit, Pause: func() { time.Sleep(time.Nanosecond) }} // lets messages in
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return false, string(page.Refuse(page.Fault{Text: "the question is not JSON"}))
	}
	data, ok := page.Ask(ctx, q)
	return ok, string(data)
}
