package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
)

const (
	mailKind      = "mail"         // of the jobs
	attemptHeader = "Mail-Attempt" // identifies the attempt of a job
)

// mailOf returns the job that sends the mail of an order, a second later.
func mailOf(order string) retryjob.Job {
	payload, _ := json.Marshal(order) // a string
	return retryjob.Job{ID: "mail-" + order, Kind: mailKind, Policy: "orders.mail", Payload: payload, Due: time.Now().Add(time.Second)}
}

// mails returns the options of a queue that delivers mails.
func (s *service) mails() retryjob.Options {
	client := &http.Client{Transport: s.tries("orders.mail", retryhttp.NewBase())} // does not retry, since the jobs do
	return retryjob.Options{
		Policies: retryjob.FromCatalog(&s.policies.catalog),
		Handlers: map[string]retryjob.Handler{mailKind: func(ctx context.Context, job retryjob.Job) error {
			return s.deliver(ctx, client, job)
		}},
	}
}

// deliver makes one attempt to send a mail. It has no Idempotency-Key, with which net/http would repeat it on its own and
// the receiver could not tell the attempts of jobs apart.
func (s *service) deliver(ctx context.Context, client *http.Client, job retryjob.Job) error {
	var order string
	if err := json.Unmarshal(job.Payload, &order); err != nil {
		return retry.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+setting("MAIL")+"/mail?order="+url.QueryEscape(order), nil)
	if err != nil {
		return retry.Permanent(err)
	}
	a, _ := retryjob.AttemptFrom(ctx)
	req.Header.Set(attemptHeader, a.AttemptID)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	err = retryhttp.CheckResponse(resp)
	if retry.IsAmbiguous(err) { // a second mail does no harm
		err = retry.Transient(err)
	}
	return err
}

// mailService receives the mails:
//
//	POST /mail?order=ID
func (s *service) mailService(context.Context) (stop func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mail", func(w http.ResponseWriter, r *http.Request) {
		s.journal.add(line{What: "mail", Ref: r.FormValue("order"), Status: r.Header.Get(attemptHeader)}, nil)
		w.WriteHeader(http.StatusNoContent)
	})
	return serve(setting("LISTEN"), mux)
}

// outboxService is the second set-up, a queue in a SQLite file:
//
//	POST /orders?order=ID    enqueues the mail of an order
func (s *service) outboxService(ctx context.Context) (stop func(), err error) {
	queue, err := retry.DoValue(ctx, startPolicy, func(ctx context.Context) (*retryriver.Queue, error) {
		return retryriver.NewSQLite(ctx, setting("DATABASE"), s.mails())
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if _, err := queue.Enqueue(r.Context(), mailOf(r.FormValue("order"))); err != nil && !errors.Is(err, retryjob.ErrDuplicate) {
			retryhttp.WriteError(w, err)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	stopHTTP, err := serve(setting("LISTEN"), retryhttp.Handler(mux, retryhttp.HandlerOptions{Trust: trusted}))
	return func() { stopHTTP(); _ = queue.Close() }, err
}
