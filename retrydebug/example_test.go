package retrydebug_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
)

func Example() {
	live := retrydebug.New(retrydebug.Options{Name: "shop"})
	policy := live.Watch(retry.Policy{Name: "inventory", MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}})
	mux := http.NewServeMux()
	mux.Handle("/debug/retry/", live)

	_ = retry.Do(context.Background(), policy, func(context.Context) error { return nil })
	_ = retry.Do(context.Background(), policy, func(context.Context) error { return errors.New("connection refused") })

	inventory := live.Snapshot().Policies[0]
	fmt.Println(inventory.Schedule)
	fmt.Println(inventory.State, inventory.Total.Runs, inventory.Total.FirstTry, inventory.Total.Reasons)
	for _, run := range live.Snapshot().Failed {
		fmt.Println(run.Policy, run.Status, run.History[0].Error)
	}
	// Output:
	// 2 attempts, exponential 1ms ×2, cap 1h: 1ms (1ms in all)
	// failing 2 1 map[attempts_exhausted:1]
	// inventory dead_letter connection refused
}

// Operators of the service may see the page from anywhere, and programs on the machine itself.
func ExampleIsLoopback() {
	live := retrydebug.New(retrydebug.Options{Allow: func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return retrydebug.IsLoopback(r) || user == "operator" && password == "of the night"
	}})
	r := httptest.NewRequest(http.MethodGet, "/debug/retry/", nil)
	for _, password := range []string{"guessed", "of the night"} {
		r.SetBasicAuth("operator", password)
		w := httptest.NewRecorder()
		live.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 403
	// 200
}

func ExampleRedactSecrets() {
	fmt.Println(retrydebug.RedactSecrets(`Get "https://me:hush@shop.example/items?token=hush": EOF`))
	// Output:
	// Get "https://(hidden)@shop.example/items?(hidden)": EOF
}
