package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/retrygo/retry"
)

// maxRecords bounds what one context keeps, if it is at the root of a program.
const maxRecords = 64

// RecordOutcome returns a context whose requests leave a record of their runs, for OutcomeOf. It keeps the
// newest 64, so that a chain of redirects or a few requests at a time can share it; make one for each logical call.
func RecordOutcome(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordsKey{}, new(records))
}

// OutcomeOf returns the record of the run that ended with resp and err, what a RoundTrip or an http.Client returned: that
// of OutcomeFromResponse, or the one in the *retry.Error. It reports false if there is neither, as in the error that a
// client whose own Timeout is over makes of ours.
func OutcomeOf(resp *http.Response, err error) (retry.Outcome, bool) {
	var failed *retry.Error
	if errors.As(err, &failed) {
		return failed.Outcome, true
	}
	return OutcomeFromResponse(resp)
}

// OutcomeFromResponse returns the record of the run that resp came from: how it ended, after how many attempts, and each
// that failed, with its wait and an *AttemptError for its status or fault. It reports false if the request's
// context does not come from RecordOutcome, or resp not from a Transport.
func OutcomeFromResponse(resp *http.Response) (retry.Outcome, bool) {
	if resp == nil || resp.Request == nil {
		return retry.Outcome{}, false
	}
	if r := recordsOf(resp.Request.Context()); r != nil {
		return r.of(resp.Request)
	}
	return retry.Outcome{}, false
}

type recordsKey struct{}

func recordsOf(ctx context.Context) *records {
	r, _ := ctx.Value(recordsKey{}).(*records)
	return r
}

// records are the runs of the requests of one context, the newest last.
type records struct {
	mu   sync.Mutex
	list []record
}

type record struct {
	req     *http.Request
	outcome retry.Outcome
}

func (r *records) add(req *http.Request, o *retry.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == maxRecords {
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.list = append(r.list, record{req, *o})
}

// of returns the newest record of req.
func (r *records) of(req *http.Request) (retry.Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range slices.Backward(r.list) {
		if one.req == req {
			o := one.outcome
			o.History = slices.Clone(o.History)
			return o, true
		}
	}
	return retry.Outcome{}, false
}
