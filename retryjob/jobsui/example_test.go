package jobsui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// loggedIn stands for a service's own login.
func loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "ops" || password != "secret" {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ExampleNew() {
	ctx := context.Background()
	engine, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1}}),
		Handlers: map[string]retryjob.Handler{
			"deliver": func(context.Context, retryjob.Job) error { return errors.New("503 Service Unavailable") },
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, _ := engine.Enqueue(ctx, retryjob.Job{ID: "order-7", Kind: "deliver", Policy: "once"})
	_, _ = job.Wait(ctx)

	page, err := jobsui.New(jobsui.Options{Admin: engine, Name: "deliveries", Hosts: []string{"shop.example.com"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/jobs/", http.StripPrefix("/jobs", loggedIn(page)))

	r := httptest.NewRequest(http.MethodGet, "https://shop.example.com/jobs/?status=dead_letter", nil)
	r.SetBasicAuth("ops", "secret")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "order-7"))
	_, _ = engine.Shutdown(ctx)
	// Output: 200 true
}
