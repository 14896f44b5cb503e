package bench_test

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/PuerkitoBio/rehttp"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// httpAttempts is the total number of attempts that each client may make.
const httpAttempts = 3

// sender sends a request, and again if it fails.
type sender func(*http.Request) (*http.Response, error)

// httpClient is a way to send requests, named as a loop. make returns it over base, with the given timeout of each
// attempt, 0 meaning none. It waits as little between attempts as the library allows.
type httpClient struct {
	name string
	make func(base http.RoundTripper, attemptTimeout time.Duration) sender
}

// retryingHTTP are the clients that retry.
var retryingHTTP = []httpClient{
	{"retryhttp", retryHTTP},
	{"rehttp", func(base http.RoundTripper, attemptTimeout time.Duration) sender {
		return (&http.Client{Transport: newReHTTP(base, attemptTimeout)}).Do
	}},
	{"go-retryablehttp", retryableOwnHTTP},
	{"go-retryablehttp-usual", func(base http.RoundTripper, attemptTimeout time.Duration) sender {
		return newRetryable(base, attemptTimeout).StandardClient().Do
	}},
	{"failsafehttp", failsafeHTTP},
}

// bareHTTP does not retry. Its timeout is http.Client.Timeout.
func bareHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	return (&http.Client{Transport: base, Timeout: attemptTimeout}).Do
}

// loopHTTP is http.Client in the shortest loop that does the work.
func loopHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	send := bareHTTP(base, attemptTimeout)
	return func(req *http.Request) (resp *http.Response, err error) {
		for n := 1; ; n++ {
			resp, err = send(req)
			if n == httpAttempts || err == nil && resp.StatusCode < 500 {
				return resp, err
			}
			drain(resp)
		}
	}
}

// recordingHTTP has no timeout of an attempt.
func recordingHTTP(base http.RoundTripper, _ time.Duration) sender {
	return (&http.Client{Transport: recorder{base}}).Do
}

// recorder is what a Transport promises, written by hand for one policy: it keeps a row for each failure, with the status
// and some of the header, and gives each retry a request of its own, whose context has the number of the attempt.
type recorder struct{ base http.RoundTripper }

func (h recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Since(epoch)
	resp, err := h.base.RoundTrip(req)
	var r *handRecord
	for number, start := 1, began; ; number++ {
		failure := handFault(req, resp, err)
		if failure == nil {
			resp.Request = req
			return resp, nil
		}
		if r == nil {
			r = newHandRecord()
		}
		ended := time.Since(epoch)
		r.note(number, httpAttempts, handFailure{start: start - began, duration: ended - start, err: failure})
		if number == httpAttempts || req.Context().Err() != nil {
			return resp, err
		}
		drain(resp)
		start = ended
		resp, err = h.base.RoundTrip(req.WithContext(r.context(req.Context(), number+1, httpAttempts)))
	}
}

// drain reads what is not returned, so that a connection can be used again. resp is nil after an error.
func drain(resp *http.Response) {
	if resp != nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// handFault returns why an attempt failed, nil if it did not.
func handFault(req *http.Request, resp *http.Response, err error) error {
	if err != nil || resp.StatusCode < 500 {
		return err
	}
	return &handStatus{resp.StatusCode, req, handKept(resp.Header)}
}

// handStatus is the failure of an attempt that got a response.
type handStatus struct {
	code    int
	request *http.Request
	header  http.Header
}

func (s *handStatus) Error() string { return http.StatusText(s.code) }

func handKept(h http.Header) http.Header {
	var small http.Header
	for _, name := range []string{"Content-Type", "Date", "Ratelimit-Reset", "Retry-After", "X-Request-Id"} {
		if value := h[name]; len(value) > 0 {
			if small == nil {
				small = http.Header{}
			}
			small[name] = []string{value[0]}
		}
	}
	return small
}

func retryHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	return (&http.Client{Transport: &retryhttp.Transport{
		Base: base,
		Policy: retry.Policy{
			MaxAttempts:    httpAttempts,
			AttemptTimeout: attemptTimeout,
			Backoff:        retry.Backoff{Delays: []time.Duration{0}},
		},
	}}).Do
}

func newReHTTP(base http.RoundTripper, attemptTimeout time.Duration) *rehttp.Transport {
	transport := rehttp.NewTransport(base, rehttp.RetryAll(
		rehttp.RetryMaxRetries(httpAttempts-1),
		rehttp.RetryAny(rehttp.RetryTimeoutErr(), rehttp.RetryStatusInterval(500, 600)),
	), rehttp.ConstDelay(0))
	transport.PerAttemptTimeout = attemptTimeout
	return transport
}

// recordedReHTTP is rehttp with what a Transport keeps of a run: around it what makes the record, below it what fills it
// and gives each retry a request of its own, whose context has the number of the attempt. It has no timeout of an attempt.
func recordedReHTTP(base http.RoundTripper, _ time.Duration) sender {
	below := roundTripper(func(req *http.Request) (*http.Response, error) {
		run := req.Context().(*recordedRun)
		start := time.Since(epoch)
		if run.number++; run.number > 1 {
			req = req.WithContext(run.record.context(run.Context, run.number, httpAttempts))
		}
		resp, err := base.RoundTrip(req)
		if failure := handFault(run.req, resp, err); failure != nil {
			f := handFailure{start: start - run.began, duration: time.Since(epoch) - start, err: failure}
			run.record.note(run.number, httpAttempts, f)
		}
		return resp, err
	})
	retrying := newReHTTP(below, 0)
	return (&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		run := &recordedRun{Context: req.Context(), req: req, began: time.Since(epoch), record: newHandRecord()}
		resp, err := retrying.RoundTrip(req.WithContext(run))
		if err == nil {
			resp.Request = req
		}
		return resp, err
	})}).Do
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// recordedRun is the context of a run of recordedReHTTP.
type recordedRun struct {
	context.Context
	req    *http.Request
	began  time.Duration
	number int // of the attempt under way
	record *handRecord
}

// retryableOwnHTTP is for requests without a body.
func retryableOwnHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	client := newRetryable(base, attemptTimeout)
	own := new(retryablehttp.Request)
	return func(req *http.Request) (*http.Response, error) {
		own.Request = req // a retry leaves a copy there
		return client.Do(own)
	}
}

// newRetryable has no timeout of an attempt other than that of its inner client.
func newRetryable(base http.RoundTripper, attemptTimeout time.Duration) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base, Timeout: attemptTimeout}
	client.Logger = nil
	client.RetryMax = httpAttempts - 1
	client.RetryWaitMin = 0
	client.RetryWaitMax = 0
	return client
}

func failsafeHTTP(base http.RoundTripper, attemptTimeout time.Duration) sender {
	policies := []failsafe.Policy[*http.Response]{
		failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(httpAttempts).WithDelay(0).Build(),
	}
	if attemptTimeout > 0 {
		policies = append(policies, timeout.New[*http.Response](attemptTimeout))
	}
	return (&http.Client{Transport: failsafehttp.NewRoundTripper(base, policies...)}).Do
}
