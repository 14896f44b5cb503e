package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// journal is a file of JSON lines that outlives its process. Each line is one write.
type journal struct {
	file    *os.File
	process string // the service, and which of its processes
}

// line is an event. A field that the event does not use is zero.
type line struct {
	Time    time.Time `json:"t"`
	Process string    `json:"p"`
	PID     int       `json:"pid"`
	What    string    `json:"what"`            // "run", "retry", "hedge", "try", or a word of the service
	Layer   string    `json:"layer,omitempty"` // the name of the policy
	Ref     string    `json:"ref,omitempty"`   // of the order
	Status  string    `json:"status,omitempty"`
	ID      string    `json:"id,omitempty"` // of the order, in the answer
	Err     string    `json:"err,omitempty"`
	Took    float64   `json:"took,omitempty"`  // seconds
	Start   float64   `json:"start,omitempty"` // of the last attempt of a run, in seconds since the run began
}

func openJournal(path, process string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return &journal{file: file, process: process}, err
}

// add writes a line, with err if that is not nil. Unless the line has a time, it is now.
func (j *journal) add(l line, err error) {
	if l.Process, l.PID = j.process, os.Getpid(); l.Time.IsZero() {
		l.Time = time.Now()
	}
	if err != nil {
		l.Err = err.Error()
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // a journal with gaps is no proof
	}
}

// observe is the Observe of every policy. It writes a line for each retry that was decided on, and for the end of each
// run.
func (j *journal) observe(_ context.Context, e retry.Event) {
	l := line{What: "run", Layer: e.Policy, Took: e.Elapsed.Seconds(), Status: e.Decision.Status.String()}
	switch {
	case e.Outcome != nil:
		if n := len(e.Outcome.History); n > 0 {
			l.Start = (e.Elapsed - time.Since(e.Outcome.History[n-1].Start)).Seconds()
		}
		j.add(l, e.Err)
	case e.Decision.Status == retry.WaitingRetry: // otherwise the end of the run follows
		l.What = "retry"
		j.add(l, e.Attempt.Err)
	}
}

// observeHedges returns the Observe of a hedge. It writes a line for each hedge, at the time at which the budget paid
// for it.
func (j *journal) observeHedges(layer string) func(context.Context, retryhedge.Event) {
	return func(_ context.Context, e retryhedge.Event) {
		began := time.Now().Add(-e.Elapsed)
		for _, c := range e.Calls[1:] {
			j.add(line{Time: began.Add(c.Began), What: "hedge", Layer: layer}, nil)
		}
	}
}

// tries is a RoundTripper with a line for each attempt and hedge.
type tries struct {
	journal *journal
	layer   string
	to      string // the host, if it is not the request's
	base    http.RoundTripper
}

func (t *tries) RoundTrip(r *http.Request) (*http.Response, error) {
	t.journal.add(line{What: "try", Layer: t.layer, Ref: r.Header.Get(refHeader)}, nil)
	if t.to != "" {
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = t.to, ""
	}
	return t.base.RoundTrip(r)
}
