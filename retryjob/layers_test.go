package retryjob_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
	"github.com/retrygo/retry/retrysql"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

var threeAtOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{0}}}

// ended returns the jobs with the given IDs, when they are final. Their handler makes the same call.
func ended(t *testing.T, call func(context.Context) error, ids ...string) (jobs []retryjob.Info) {
	synctest.Test(t, func(t *testing.T) {
		engine := jobtest.NewJobs(t, retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{"p": threeAtOnce}),
			Handlers: map[string]retryjob.Handler{"call": func(ctx context.Context, _ retryjob.Job) error { return call(ctx) }},
		})
		for _, id := range ids {
			jobs = append(jobs, engine.Run(retryjob.Job{ID: id, Kind: "call", Policy: "p"})...)
		}
	})
	return jobs
}

// post sends a POST through base. A 503 is its error.
func post(ctx context.Context, base http.RoundTripper) error {
	client := http.Client{Transport: &retryhttp.Transport{Base: base, IdempotencyKey: retryhttp.WorkKey, Policy: retry.Policy{MaxAttempts: 2, Backoff: threeAtOnce.Backoff}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bank.test/charges", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return retryhttp.CheckResponse(resp)
}

func TestEachAttemptOfAJobSendsTheSameIdempotencyKey(t *testing.T) {
	var keys []string
	unavailable := roundTripper(func(req *http.Request) (*http.Response, error) {
		keys = append(keys, req.Header.Get("Idempotency-Key"))
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	for _, job := range ended(t, func(ctx context.Context) error { return post(ctx, unavailable) }, "order-7", "order-8") {
		require.Equal(t, retryjob.DeadLettered, job.Status)
	}
	require.Len(t, keys, 12, "two jobs of three attempts of two sends")
	require.Equal(t, slices.Concat(slices.Repeat(keys[:1], 6), slices.Repeat(keys[6:7], 6)), keys)
	require.NotEqual(t, keys[0], keys[6])
}

// uncertain is a database whose answer to each COMMIT is lost.
type uncertain struct{ commits int }

func (u *uncertain) Connect(context.Context) (driver.Conn, error) { return u, nil }
func (u *uncertain) Driver() driver.Driver                        { return nil }
func (u *uncertain) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (u *uncertain) Begin() (driver.Tx, error)                    { return u, nil }
func (u *uncertain) Commit() error                                { u.commits++; return io.ErrUnexpectedEOF }
func (u *uncertain) Rollback() error                              { return nil }
func (u *uncertain) Close() error                                 { return nil }

// A job whose work may have been done is not attempted again.
func TestAJobInDoubtIsADeadLetter(t *testing.T) {
	t.Run("a POST without a key whose answer was lost is not repeated", func(t *testing.T) {
		sent := 0
		cut := roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, io.ErrUnexpectedEOF })
		job := ended(t, func(ctx context.Context) error {
			client := http.Client{Transport: &retryhttp.Transport{Base: cut, Policy: threeAtOnce}}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bank.test/charges", nil)
			if err != nil {
				return err
			}
			_, err = client.Do(req)
			return err
		}, "order-7")[0]
		require.Equal(t, []any{retryjob.DeadLettered, retry.TerminalError, 1, 1}, []any{job.Status, job.Reason, job.Attempts, sent})
	})
	t.Run("a COMMIT whose answer was lost is not repeated", func(t *testing.T) {
		var bank uncertain
		job := ended(t, func(ctx context.Context) error {
			db := sql.OpenDB(&bank)
			defer db.Close()
			return retrysql.Tx(ctx, db, threeAtOnce, nil, func(context.Context, *retrysql.Txn) error { return nil })
		}, "order-7")[0]
		require.Equal(t, []any{retryjob.DeadLettered, retry.TerminalError, 1, 1}, []any{job.Status, job.Reason, job.Attempts, bank.commits})
	})
}
