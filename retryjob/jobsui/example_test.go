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

// access stands for a service's own login: ops may change jobs, and others who are logged in may look at them.
func access(r *http.Request) jobsui.Access {
	switch user, password, ok := r.BasicAuth(); {
	case !ok || password != "secret":
		return jobsui.NoAccess
	case user == "ops":
		return jobsui.ReadWrite
	default:
		return jobsui.ReadOnly
	}
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

	page, err := jobsui.New(jobsui.Options{Admin: engine, Name: "deliveries", Access: access, Hosts: []string{"shop.example.com"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/jobs/", http.StripPrefix("/jobs", page))

	for _, user := range []string{"ops", "guest", ""} {
		r := httptest.NewRequest(http.MethodGet, "https://shop.example.com/jobs/?status=dead_letter", nil)
		if user != "" {
			r.SetBasicAuth(user, "secret")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.Contains(w.Body.String(), "order-7"), strings.Contains(w.Body.String(), "purge"))
	}
	_, _ = engine.Shutdown(ctx)
	// Output:
	// 200 true true
	// 200 true false
	// 403 false false
}
