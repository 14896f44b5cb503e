//go:build js

// Command wasm is package page as WebAssembly, for the static form of the page: page.sh builds it.
package main

import (
	"context"
	"encoding/json"
	"syscall/js"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
)

// limit is the time that a count may take: longer than in the server, since WebAssembly is slower.
const limit = 6 * time.Second

// main defines the function retryplan(question, tell), which calls tell(answer, ok, last) one or more times later, and
// returns a function that ends the simulation. Question and answers are JSON.
func main() {
	js.Global().Set("retryplan", js.FuncOf(func(_ js.Value, args []js.Value) any {
		ctx, stop := context.WithCancel(context.Background())
		question, tell := args[0].String(), args[1]
		end := js.FuncOf(func(js.Value, []js.Value) any {
			stop()
			return nil
		})
		go func() {
			defer stop()
			ok, body := answer(ctx, question, func(body []byte) { tell.Invoke(string(body), true, false) })
			tell.Invoke(body, ok, true)
		}()
		return end
	}))
	select {}
}

func answer(ctx context.Context, text string, tell func(body []byte)) (ok bool, body string) {
	q := page.Question{Limit: limit, Tell: tell, Pause: func() { time.Sleep(time.Nanosecond) }} // lets messages in
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return false, string(page.Refuse(page.Fault{Text: "the question is not JSON"}))
	}
	data, ok := page.Ask(ctx, q)
	return ok, string(data)
}
