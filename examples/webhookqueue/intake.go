package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

// request is a user's request. It is an event for a URL, with its own settings if the service's do not fit. If it is
// repeated, since an answer was lost, Enqueue returns retryjob.ErrDuplicate.
type request struct {
	ID          string          `json:"id"`
	Tenant      string          `json:"tenant"`
	URL         string          `json:"url"`
	Event       string          `json:"event"`
	Policy      string          `json:"policy"`       // by name, or the service's default if empty
	RetryPolicy json.RawMessage `json:"retry_policy"` // a retryconf.Spec, field by field over that
}

// parse returns the job of a request, or all of its faults, for the body of a 422.
func parse(body []byte) (job retryjob.Job, faults []retry.FieldError) {
	var req request
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return job, []retry.FieldError{{Field: "body", Rule: err.Error()}}
	}
	note := func(err error, key func(field string) string) {
		var bad retry.FieldErrors
		errors.As(err, &bad)
		for _, err := range bad {
			if e := new(retry.FieldError); errors.As(err, &e) {
				faults = append(faults, retry.FieldError{Field: key(e.Field), Value: asJSON(e.Value), Rule: e.Rule})
			}
		}
	}
	job = retryjob.Job{ID: req.ID, Kind: "webhook", Policy: req.Policy}
	job.Payload, _ = json.Marshal(delivery{URL: req.URL, Event: req.Event}) // two texts
	to, err := url.Parse(req.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		faults = append(faults, retry.FieldError{Field: "url", Value: strconv.Quote(req.URL), Rule: "is not the URL of a web server"})
	} else {
		job.BudgetKey = req.Tenant + " " + to.Host // an endpoint that is down does not use up the retries of others
	}
	if len(req.RetryPolicy) > 0 {
		job.Spec = &retryconf.Spec{}
		if err := json.Unmarshal(req.RetryPolicy, job.Spec); err != nil {
			job.Spec = nil
			note(err, func(field string) string { return strings.TrimSuffix("retry_policy."+field, ".") })
		}
	}
	note(job.Validate(policies), keys.Replace) // the errors of Enqueue, under the request's keys
	return job, faults
}

// asJSON returns a value as the request has it, which is in quotes for a text.
func asJSON(value string) string {
	if value == "" || strings.HasPrefix(value, `"`) || json.Valid([]byte(value)) {
		return value
	}
	return strconv.Quote(value)
}

// keys has the key of a request for each field of a job that comes from one.
var keys = strings.NewReplacer("Job.Spec.", "retry_policy.", "Job.ID", "id", "Job.Policy", "policy", "Job.BudgetKey", "tenant", "Job.Payload", "event")
