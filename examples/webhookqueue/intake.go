package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

// request is a user's request: an event for a URL, with its own settings if those of the service do not fit.
type request struct {
	ID          string          `json:"id"`
	Tenant      string          `json:"tenant"`
	URL         string          `json:"url"`
	Event       string          `json:"event"`
	Policy      string          `json:"policy"`       // by name; "" is the service's default
	RetryPolicy json.RawMessage `json:"retry_policy"` // a retryconf.Spec, field by field over that
	TTL         json.RawMessage `json:"ttl"`          // "30s", over both
}

// fault is one fault of a request, under its key.
type fault = retry.FieldError

// intake accepts deliveries: 202, or 422 with every fault of the request at once.
type intake struct{ queue retryjob.Enqueuer }

func (i intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		answer(w, http.StatusBadRequest, []fault{{Rule: err.Error()}})
		return
	}
	job, faults := parse(body)
	if len(faults) > 0 {
		answer(w, http.StatusUnprocessableEntity, faults)
		return
	}
	switch _, err := i.queue.Enqueue(r.Context(), job); {
	case errors.Is(err, retryjob.ErrDuplicate): // the user repeats the request, since an answer was lost
		answer(w, http.StatusOK, nil)
	case err != nil:
		answer(w, http.StatusServiceUnavailable, []fault{{Rule: "cannot be taken now"}})
	default:
		answer(w, http.StatusAccepted, nil)
	}
}

func answer(w http.ResponseWriter, status int, faults []fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]fault{"errors": faults})
}

// parse returns the job of a request, or all of its faults.
func parse(body []byte) (retryjob.Job, []fault) {
	var req request
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return retryjob.Job{}, []fault{{Rule: err.Error()}}
	}
	var faults []fault
	job := retryjob.Job{ID: req.ID, Kind: kind, Policy: req.Policy}
	to, err := url.Parse(req.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		faults = append(faults, fault{Field: "url", Value: req.URL, Rule: "is not the URL of a web server"})
	} else {
		job.BudgetKey = req.Tenant + " " + to.Host // an endpoint that is down does not use up the retries of others
	}
	if len(req.RetryPolicy) > 0 {
		job.Spec = &retryconf.Spec{}
		if err := json.Unmarshal(req.RetryPolicy, job.Spec); err != nil {
			job.Spec = nil
			var bad retry.FieldErrors
			errors.As(err, &bad)
			for _, err := range bad {
				e := *err.(*retry.FieldError)
				e.Field = strings.TrimSuffix("retry_policy."+e.Field, ".")
				faults = append(faults, e)
			}
		}
	}
	if len(req.TTL) > 0 {
		var ttl retryconf.Duration
		if err := json.Unmarshal(req.TTL, &ttl); err != nil {
			var e *retry.FieldError
			errors.As(err, &e)
			faults = append(faults, fault{Field: "ttl", Value: e.Value, Rule: e.Rule})
		}
		job.TTL = time.Duration(ttl)
	}
	if job.Payload, err = json.Marshal(delivery{URL: req.URL, Event: req.Event}); err != nil {
		return job, append(faults, fault{Rule: fmt.Sprint(err)})
	}
	var bad retry.FieldErrors
	errors.As(job.Validate(policies), &bad) // the errors of Enqueue, under the request's keys
	for _, err := range bad {
		var e *retry.FieldError
		errors.As(err, &e)
		faults = append(faults, fault{Field: keys.Replace(e.Field), Value: e.Value, Rule: e.Rule})
	}
	return job, faults
}

// keys has the key of a request for each field of a job that comes from one.
var keys = strings.NewReplacer("Job.Spec.", "retry_policy.", "Job.TTL", "ttl", "Job.ID", "id", "Job.Policy", "policy", "Job.Budget", "tenant", "Job.Payload", "event")
