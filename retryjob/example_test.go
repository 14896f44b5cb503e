package retryjob_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
)

// An engine is a loop around Step. This one runs through hours in a moment.
func ExampleStepper() {
	now := time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)
	stepper := retryjob.Stepper{
		Policies: retryjob.FromMap(map[string]retry.Policy{"delivery": retry.Standard()}),
		Now:      func() time.Time { return now },
	}
	job := retryjob.Job{ID: "order-7", Kind: "webhook", Policy: "delivery"}
	rec := retryjob.NewRecord(&job, now)
	for attempt := 1; !rec.Status.Final(); attempt++ {
		now = rec.Due
		verdict, err := stepper.Step(context.Background(), &rec, attempt, func(ctx context.Context) error {
			return errors.New("503 Service Unavailable")
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(attempt, now.Format("15:04"), verdict.Status)
	}
	fmt.Println(rec.Reason)
	// Output:
	// 1 09:00 waiting_retry
	// 2 09:01 waiting_retry
	// 3 09:31 waiting_retry
	// 4 12:31 dead_letter
	// attempts_exhausted
}

// A worker died in the first attempt. The process that notices it calls Lost, which decides when the next attempt is
// due.
func ExampleStepper_Lost() {
	now := time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)
	stepper := retryjob.Stepper{
		Policies: retryjob.FromMap(map[string]retry.Policy{"delivery": retry.Standard()}),
		Now:      func() time.Time { return now },
	}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "webhook", Policy: "delivery"}, now)
	verdict, err := stepper.Lost(context.Background(), &rec, 1)
	fmt.Println(verdict.Status, verdict.Due.Format("15:04"), err)
	fmt.Println(rec.Last().Err)
	// Output:
	// waiting_retry 09:01 <nil>
	// retryjob: the worker was lost
}

// An attempt may be made twice, so use the job's ID as an idempotency key.
func ExampleAttemptFrom() {
	handler := func(ctx context.Context) error {
		a, _ := retryjob.AttemptFrom(ctx)
		fmt.Println("Idempotency-Key:", a.JobID)
		fmt.Println("attempt", a.Number, "is", a.AttemptID)
		return nil
	}
	stepper := retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}})}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "charge", Policy: "p"}, time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC))
	_, err := stepper.Step(context.Background(), &rec, 1, handler)
	fmt.Println(rec.Status, err)
	// Output:
	// Idempotency-Key: order-7
	// attempt 1 is order-7.0.1.dmkloix651c0
	// succeeded <nil>
}

// A handler that makes a request returns the error of retryhttp.CheckResponse: the record has the status, and the next
// attempt obeys Retry-After.
func ExampleHandler() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	deliver := retryjob.Handler(func(ctx context.Context, job retryjob.Job) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, bytes.NewReader(job.Payload))
		if err != nil {
			return retry.Permanent(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		return retryhttp.CheckResponse(resp)
	})
	attempted := make(chan struct{})
	policy := retry.Policy{Observe: func(context.Context, retry.Event) { close(attempted) }}
	engine, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"delivery": policy}),
		Handlers: map[string]retryjob.Handler{"webhook": deliver},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := engine.Enqueue(ctx, retryjob.Job{ID: "evt-7", Kind: "webhook", Policy: "delivery"}); err != nil {
		fmt.Println(err)
		return
	}
	<-attempted
	_, _ = engine.Shutdown(ctx)
	info, _ := engine.Get(ctx, "evt-7")
	last := info.Last()
	fmt.Println(info.Status, last.Code, last.Err, last.Due.Sub(last.End))
	// Output: waiting_retry 429 retryhttp: 429 Too Many Requests 1m30s
}

// Middleware is a function that wraps the handlers before the engine gets them.
func ExampleOptions_middleware() {
	logged := func(next retryjob.Handler) retryjob.Handler {
		return func(ctx context.Context, job retryjob.Job) error {
			err := next(ctx, job)
			fmt.Println(job.Kind, job.ID, err)
			return err
		}
	}
	handlers := map[string]retryjob.Handler{
		"mail": func(context.Context, retryjob.Job) error { return nil },
	}
	for kind, handler := range handlers {
		handlers[kind] = logged(handler)
	}
	engine, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"": retry.Standard()}), Handlers: handlers,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	job, err := engine.Enqueue(ctx, retryjob.Job{ID: "welcome-7", Kind: "mail"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = job.Wait(ctx)
	fmt.Println(err)
	// Output:
	// mail welcome-7 <nil>
	// <nil>
}

// Replay many jobs a few at a time, so that they do not overload a service that has just recovered. Jobs that have
// failed since the beginning are left out. A Purge of the same form, called from time to time, is a retention by kind.
func ExampleAdmin_pace() {
	fails := true
	engine, err := retryjob.New(retryjob.Options{
		Policies:    retryjob.FromMap(map[string]retry.Policy{"": {MaxAttempts: 1}}),
		Concurrency: 1,
		Handlers: map[string]retryjob.Handler{"mail": func(context.Context, retryjob.Job) error {
			if fails {
				return errors.New("down")
			}
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	jobs, err := engine.EnqueueMany(ctx, slices.Repeat([]retryjob.Job{{Kind: "mail"}}, 5))
	for _, job := range jobs {
		_, _ = job.Wait(ctx)
	}
	fails = false

	var admin retryjob.Admin = engine
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	dead := retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Until: time.Now(), Limit: 2}
	for n := dead.Limit; n == dead.Limit && err == nil; <-tick.C {
		n, err = admin.ReplayAll(ctx, dead)
		fmt.Println(n, err)
	}
	for _, job := range jobs {
		_, _ = job.Wait(ctx)
	}
	counts, err := admin.Count(ctx, retryjob.Filter{})
	fmt.Println(counts[retryjob.Succeeded].Jobs, err)
	purged, err := admin.Purge(ctx, retryjob.Filter{Kinds: []string{"mail"}, Until: time.Now().Add(-24 * time.Hour)})
	fmt.Println(purged, err)
	// Output:
	// 2 <nil>
	// 2 <nil>
	// 1 <nil>
	// 5 <nil>
	// 0 <nil>
}

// Operators change the policy of a name, and waiting jobs follow it.
func ExampleFromCatalog() {
	var catalog retryconf.Catalog
	catalog.Define("outbound", retry.Standard())
	policies := retryjob.FromCatalog(&catalog)

	job := retryjob.Job{Kind: "webhook", Policy: "outbound"}
	policy, _ := policies.Of(&job)
	fmt.Println(policy)
	if err := catalog.Load(strings.NewReader(`{"policies": {"outbound": {"delays": ["10s", "1m"]}}}`)); err != nil {
		fmt.Println(err)
	}
	policy, _ = policies.Of(&job)
	fmt.Println(policy)
	// Output:
	// outbound: 4 attempts, list: 1m 30m 3h (3h31m in all)
	// outbound: 3 attempts, list: 10s 1m (1m10s in all)
}

// A function of type Policies can have a default policy, and a budget for each tenant and endpoint. The settings of a
// job replace those of the policy, within limits.
func ExamplePolicies() {
	var catalog retryconf.Catalog
	catalog.Define("webhooks", retry.Patient())
	named := retryjob.FromCatalog(&catalog)
	budgets := retry.NewBudgets(retry.BudgetConfig{}, 10_000)
	policies := retryjob.Policies(func(j *retryjob.Job) (retry.Policy, error) {
		of := *j
		of.Policy = cmp.Or(of.Policy, "webhooks")
		p, err := named(&of)
		p.Budget = budgets.For(j.BudgetKey)
		return p, err
	}).Within(retryconf.ServiceLimits())

	for _, attempts := range []retryconf.Attempts{2, 51} {
		job := retryjob.Job{Kind: "webhook", BudgetKey: "acme example.org", TTL: time.Hour, Spec: &retryconf.Spec{MaxAttempts: attempts}}
		policy, _ := policies.Of(&job)
		fmt.Println(policy.MaxAttempts, policy.TTL, job.Validate(policies))
	}
	// Output:
	// 2 1h0m0s <nil>
	// 51 1h0m0s retryjob: Job.Spec.max_attempts 51 is outside 1 to 50
}

func ExampleFromMap() {
	policies := retryjob.FromMap(map[string]retry.Policy{"": retry.Inline(), "delivery": retry.Standard()})
	for _, name := range []string{"delivery", "", "pickup"} {
		policy, err := policies.Of(&retryjob.Job{Kind: "webhook", Policy: name})
		fmt.Println(policy.Name, err)
	}
	// Output:
	// standard <nil>
	// inline <nil>
	//  retryjob: unknown policy
}

// A record is data that a database can store. A replay begins a dead letter again.
func ExampleRecord_Replay() {
	now := time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)
	stepper := retryjob.Stepper{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1}}),
		Now:      func() time.Time { return now },
	}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "webhook", Policy: "once"}, now)
	_, err := stepper.Step(context.Background(), &rec, 1, func(context.Context) error { return errors.New("no such host") })
	fmt.Println(rec.Status, rec.Reason, err)

	now = now.Add(time.Hour)
	fmt.Println(rec.Replay(now))
	text, err := json.Marshal(rec)
	fmt.Println(string(text), err)
	// Output:
	// dead_letter attempts_exhausted <nil>
	// <nil>
	// {"v":3,"job":"order-7","kind":"webhook","policy":"once","first_due":"2026-11-02T10:00:00Z","replays":1,"status":"pending","due":"2026-11-02T10:00:00Z","attempts":0,"earlier":[{"first_due":"2026-11-02T09:00:00Z","ended":"2026-11-02T09:00:00Z","status":"dead_letter","reason":"attempts_exhausted","attempts":1,"err":"no such host"}]} <nil>
}

func ExampleJob_Validate() {
	policies := retryjob.FromMap(map[string]retry.Policy{"delivery": retry.Standard()})
	for _, job := range []retryjob.Job{
		{Kind: "webhook", Policy: "delivery", Payload: []byte(`{"to": "https://example.org"}`)},
		{Kind: "webhook", Policy: "pickup"},
		{Kind: "webhook", Policy: "delivery", Payload: []byte(`{"to":`)},
	} {
		fmt.Println(job.Validate(policies))
	}
	// Output:
	// <nil>
	// retryjob: Job.Policy "pickup" is not the name of a policy
	// retryjob: Job.Payload of 6 bytes is not JSON
}

func ExampleFilter() {
	f := retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Kinds: []string{"webhook"}}
	letter := retryjob.Info{Record: retryjob.Record{Kind: "webhook", Status: retryjob.DeadLettered}}
	fmt.Println(f.Selects(&letter), f.Page())
	// Output: true 100
}

// An engine stores the decision before it calls Observe, so that Observe finds the job as the event says.
func ExampleNext_Tell() {
	stored := retryjob.Status(0)
	policy := retry.Policy{MaxAttempts: 1, Observe: func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			fmt.Println(e.Outcome.Status, "and the engine has stored", stored)
		}
	}}
	stepper := retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": policy})}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "charge", Policy: "p"}, time.Now())
	next, err := stepper.Step(context.Background(), &rec, 1, func(context.Context) error { return errors.New("declined") })
	if err != nil {
		fmt.Println(err)
		return
	}
	stored = rec.Status // in the database
	next.Tell()
	// Output: dead_letter and the engine has stored dead_letter
}

// A waiting job is canceled in its record. The Stepper returns its token and reports the end.
func ExampleStepper_Canceled() {
	policy := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: 3}), Observe: func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			fmt.Println(e.Err)
		}
	}}
	stepper := retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": policy})}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "charge", Policy: "p"}, time.Now())
	_, err := stepper.Step(context.Background(), &rec, 1, func(context.Context) error { return errors.New("declined") })
	fmt.Println(rec.Status, policy.Budget.Tokens(), err)
	if err := rec.Cancel(rec.FirstDue); err != nil {
		fmt.Println(err)
		return
	}
	stepper.Canceled(context.Background(), &rec)
	fmt.Println(rec.Status, policy.Budget.Tokens())
	// Output:
	// waiting_retry 2 <nil>
	// retry: p: gave up after 1 attempt in 0s (caller_canceled): declined
	// canceled 3
}

// A worker that was suspended resumes with a result after its attempt was recorded as lost.
func ExampleRecord_AddLate() {
	stepper := retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": {MaxAttempts: 2}})}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "charge", Policy: "p"}, time.Now())
	_, err := stepper.Step(context.Background(), &rec, 2, func(context.Context) error { return errors.New("declined") })
	if err != nil {
		fmt.Println(err)
		return
	}
	first := rec.History[0]
	fmt.Println(first.Number, first.Status, first.Err)
	fmt.Println(rec.AddLate(retryjob.Attempt{ID: first.ID, Start: rec.FirstDue, End: time.Now()}))
	first = rec.History[0]
	fmt.Printf("%d %v %q late: %v\n", first.Number, first.Status, first.Err, first.Late)
	fmt.Println(rec.Status, rec.Reason)
	// Output:
	// 1 waiting_retry retryjob: the worker was lost
	// true
	// 1 waiting_retry "" late: true
	// dead_letter attempts_exhausted
}
