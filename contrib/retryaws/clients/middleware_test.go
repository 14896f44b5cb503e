package clients_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrytest"
)

func read(body io.ReadCloser) (string, error) {
	data, err := io.ReadAll(body)
	return string(data), errors.Join(err, body.Close())
}

// What the README says: the waits between the requests that arrived, and those of the policy.
func TestTheWaitsAreThePolicysInBothModes(t *testing.T) {
	jittered, listed := doubling, retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{10 * time.Millisecond, time.Second, time.Minute}}}
	jittered.Jitter, jittered.Rand = retry.FullJitter, func() float64 { return 0.5 }
	linear := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Linear, Base: 50 * time.Millisecond}}
	for name, row := range map[string]struct {
		policy retry.Policy
		waits  []time.Duration
	}{
		"exponential": {doubling, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}},
		"full jitter": {jittered, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}},
		"linear":      {linear, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond}},
		"list":        {listed, []time.Duration{10 * time.Millisecond, time.Second, time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				r := fetch(t.Context(), t, row.policy, slowDown, slowDown, slowDown, retrytest.Answer{Body: "object"})
				require.NoError(t, r.err)
				require.Equal(t, "object", r.text)
				require.Equal(t, row.waits, waits(r.Server))
				require.Equal(t, []string{"attempt=1; max=4", "attempt=2; max=4", "attempt=3; max=4", "attempt=4; max=4"}, attempts(r.Server))
			})
		})
	}
}

// waits returns the times between the requests.
func waits(server *retrytest.Server) (waits []time.Duration) {
	requests := server.Requests()
	for i, r := range requests[1:] {
		waits = append(waits, r.At-requests[i].At)
	}
	return waits
}

// attempts returns the SDK's header field of each request.
func attempts(server *retrytest.Server) (fields []string) {
	for _, r := range server.Requests() {
		fields = append(fields, r.Header.Get("Amz-Sdk-Request"))
	}
	return fields
}

func TestAnUnlimitedPolicyAnnouncesNoMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fetch(t.Context(), t, retry.Policy{MaxAttempts: retry.Unlimited}, slowDown, ok)
		require.NoError(t, r.err)
		require.Equal(t, []string{"attempt=1", "attempt=2"}, attempts(r.Server))
	})
}

func TestHintsOfBothHeadersAreFloorsInBothModes(t *testing.T) {
	for name, row := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"seconds":                   {http.Header{"Retry-After": {"3"}}, 3 * time.Second},
		"milliseconds":              {http.Header{"X-Amz-Retry-After": {"700"}}, 700 * time.Millisecond},
		"a minute is not cut to 5s": {http.Header{"X-Amz-Retry-After": {"60000"}}, time.Minute},
		"below the backoff":         {http.Header{"X-Amz-Retry-After": {"50"}}, 100 * time.Millisecond},
		"the longer of two":         {http.Header{"Retry-After": {"1"}, "X-Amz-Retry-After": {"2500"}}, 2500 * time.Millisecond},
		"junk":                      {http.Header{"X-Amz-Retry-After": {"soon"}, "Retry-After": {"-1"}}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				r := fetch(t.Context(), t, doubling, retrytest.Answer{Status: 503, Header: row.header, Body: apiError("SlowDown")}, ok)
				require.NoError(t, r.err)
				require.Equal(t, row.want, r.took)
			})
		})
	}
}

func TestEveryEndingIsAnOutcome(t *testing.T) {
	var empty = retry.BudgetConfig{Initial: -1}
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		answer retrytest.Answer
		within time.Duration
		reason retry.Reason
		after  time.Duration
		made   int
	}{
		"attempts":                     {reason: retry.AttemptsExhausted, after: 700 * time.Millisecond, made: 4},
		"TTL":                          {change: func(p *retry.Policy) { p.TTL = 400 * time.Millisecond }, reason: retry.TTLElapsed, after: 300 * time.Millisecond, made: 3},
		"deadline":                     {within: 250 * time.Millisecond, reason: retry.DeadlineTooNear, after: 100 * time.Millisecond, made: 2},
		"budget":                       {change: func(p *retry.Policy) { p.Budget = retry.NewBudget(empty) }, reason: retry.BudgetExhausted, made: 1},
		"disabled":                     {change: func(p *retry.Policy) { p.Disabled = true }, reason: retry.RetriesDisabled, made: 1},
		"long hint":                    {change: func(p *retry.Policy) { p.MaxHint = time.Second }, answer: retrytest.Answer{Status: 503, RetryAfter: 2 * time.Second}, reason: retry.HintTooLong, made: 1},
		"status that is not an answer": {answer: retrytest.Answer{Status: 501}, reason: retry.TerminalError, made: 1},
		"own classifier":               {change: func(p *retry.Policy) { p.Classify = retry.Otherwise(retry.Terminal) }, reason: retry.TerminalError, made: 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			answer := slowDown
			if row.answer.Status != 0 {
				answer = row.answer
			}
			answer.Times = row.made
			p := doubling
			p.Name = "s3"
			var events []retry.Event
			p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
			if row.change != nil {
				row.change(&p)
			}
			ctx := t.Context()
			if row.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.within)
				defer cancel()
			}
			r := fetch(ctx, t, p, answer)
			require.Equal(t, row.after, r.took)
			require.ErrorIs(t, r.err, row.reason)

			var run *retry.Error
			var operation *smithy.OperationError
			var api smithy.APIError
			require.ErrorAs(t, r.err, &run)
			require.ErrorAs(t, r.err, &operation)
			require.ErrorAs(t, r.err, &api, "the SDK's error of the last attempt")
			require.Equal(t, "GetObject", operation.OperationName)
			require.Equal(t, row.made, run.Attempts)
			require.Len(t, events, row.made+1)
			require.Equal(t, row.reason, events[row.made].Outcome.Reason)
			require.NotContains(t, r.err.Error(), "\n")
		})
	}
}

func TestACanceledWaitIsRefunded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := doubling
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		ctx, cancel := context.WithCancelCause(t.Context())
		shutdown := errors.New("shutdown")
		time.AfterFunc(30*time.Millisecond, func() { cancel(shutdown) })
		r := fetch(ctx, t, p, slowDown)
		require.Equal(t, 30*time.Millisecond, r.took)
		require.ErrorIs(t, r.err, retry.CallerCanceled)
		require.ErrorIs(t, r.err, context.Canceled)
		require.ErrorIs(t, r.err, shutdown)
		require.InDelta(t, 1, p.Budget.Tokens(), 0)
		require.ErrorAs(t, r.err, new(smithy.APIError), "which the SDK loses here")
	})
}

func TestAnAnswerIsNoFailure(t *testing.T) {
	for name, answer := range map[string]retrytest.Answer{
		"404":                     {Status: 404, Body: apiError("NoSuchKey")},
		"412":                     {Status: 412, Body: apiError("PreconditionFailed")},
		"400":                     {Status: 400, Body: apiError("InvalidArgument")},
		"403":                     {Status: 403, Body: apiError("AccessDenied")},
		"304":                     {Status: 304},
		"404, with a Retry-After": {Status: 404, Body: apiError("NoSuchKey"), RetryAfter: time.Minute},
	} {
		inBubble(t, name, func(t *testing.T) {
			var last retry.Event
			p := doubling
			p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: 1})
			p.Observe = func(_ context.Context, e retry.Event) { last = e }
			r := fetch(t.Context(), t, p, answer)
			require.Error(t, r.err)
			require.NotErrorAs(t, r.err, new(*retry.Error))
			require.Equal(t, retry.Succeeded, last.Outcome.Status)
			require.InDelta(t, 1.5, p.Budget.Tokens(), 0)
			if strings.HasPrefix(name, "404") {
				require.ErrorAs(t, r.err, new(*types.NoSuchKey))
			}
		})
	}
}

func TestWhatIsRepeated(t *testing.T) {
	missing := retrytest.Answer{Status: 404, Body: apiError("NoSuchKey")}
	for name, row := range map[string]struct {
		answer   retrytest.Answer
		classify retry.Classifier
		made     int
		failed   bool
	}{
		"500":                        {answer: retrytest.Answer{Status: 500}, made: 2},
		"throttling with 400":        {answer: retrytest.Answer{Status: 400, Body: apiError("ThrottlingException")}, made: 2},
		"a reset connection":         {answer: retrytest.Answer{Fault: retrytest.ResetUnread}, made: 2},
		"a 404 that Classify wants":  {answer: missing, classify: retry.Otherwise(retry.Retryable), made: 2},
		"a 404, once":                {answer: missing, made: 1},
		"429, with each version":     {answer: retrytest.Answer{Status: 429}, made: 2},
		"429, if not wanted":         {answer: retrytest.Answer{Status: 429}, classify: retry.Otherwise(retry.Terminal), made: 1, failed: true},
		"throttling, if not wanted":  {answer: retrytest.Answer{Status: 400, Body: apiError("ThrottlingException")}, classify: retry.Otherwise(retry.Terminal), made: 1, failed: true},
		"a 503 that is not repeated": {answer: slowDown, classify: retry.Otherwise(retry.Terminal), made: 1, failed: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			p := doubling
			p.Classify = row.classify
			r := fetch(t.Context(), t, p, []retrytest.Answer{row.answer, ok}[:row.made]...)
			require.Len(t, r.Requests(), row.made)
			require.Equal(t, row.failed, errors.Is(r.err, retry.TerminalError))
		})
	}
}

// permanent is a transport that marks what fails.
type permanent struct{ http.RoundTripper }

func (p permanent) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(req)
	return resp, retry.Permanent(err)
}

func TestAMarkOfTheTransportIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{{Fault: retrytest.ResetUnread}})
		_, err := get(t.Context(), clientOf(config(permanent{server}, option(doubling))))
		require.ErrorIs(t, err, retry.TerminalError)
	})
}

func TestAnAttemptTimeoutStopsAtTheHeadersOfABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := doubling
		p.AttemptTimeout = time.Second
		var events []retry.Event
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		r := fetch(t.Context(), t, p, retrytest.Answer{Takes: time.Hour}, retrytest.Answer{Pause: time.Minute, Body: "slow"})
		require.NoError(t, r.err)
		require.Equal(t, "slow", r.text)
		require.Equal(t, time.Second+100*time.Millisecond+time.Minute, r.took)
		require.ErrorIs(t, events[0].Attempt.Err, retry.ErrAttemptTimeout)
		require.NotErrorIs(t, events[0].Attempt.Err, context.Canceled)
	})
}

// A step of the caller's own may hold a response that has come until its context has ended.
func TestAResponseThatIsHeldTooLongIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{{Body: "first"}, {Body: "second"}})
		p, held := doubling, false
		p.AttemptTimeout = time.Second
		hold := middleware.DeserializeMiddlewareFunc("hold", func(
			ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
		) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if !held {
				held = true
				time.Sleep(time.Minute)
			}
			return out, metadata, err
		})
		var events []retry.Event
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		text, err := get(t.Context(), clientOf(config(server, option(p), func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(hold, middleware.Before)
		})))
		require.NoError(t, err)
		require.Equal(t, "second", text)
		require.ErrorIs(t, events[0].Attempt.Err, retry.ErrAttemptTimeout)
	})
}

func TestAnAttemptTimeoutCoversAResponseThatTheSDKReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = "<ListAllMyBucketsResult><Buckets></Buckets></ListAllMyBucketsResult>"
		server := retrytest.NewPipeServer(t, []retrytest.Answer{{Pause: time.Hour, Body: list}, {Body: list}})
		p := doubling
		p.AttemptTimeout = time.Second
		began := time.Now()
		_, err := clientOf(config(server, option(p))).ListBuckets(t.Context(), &s3.ListBucketsInput{})
		require.NoError(t, err)
		require.Equal(t, 1100*time.Millisecond, time.Since(began))
	})
}

func TestTheContextOfAnAttemptEndsWithItsBodyOrItself(t *testing.T) {
	server := retrytest.NewServer(t, []retrytest.Answer{slowDown, {Body: "object"}})
	p := doubling
	p.AttemptTimeout = time.Minute
	var ctxs []context.Context
	spy := middleware.DeserializeMiddlewareFunc("spy", func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		ctxs = append(ctxs, ctx)
		if len(ctxs) == 1 {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, retry.Transient(errors.New("no connection"))
		}
		return next.HandleDeserialize(ctx, in)
	})
	client := clientOf(config(server, option(p), func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(spy, middleware.Before)
	}))
	out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	require.NoError(t, err)
	require.Len(t, ctxs, 3)
	require.ErrorIs(t, ctxs[0].Err(), context.Canceled, "without a response")
	require.ErrorIs(t, ctxs[1].Err(), context.Canceled, "with one that is a failure")
	require.NoError(t, ctxs[2].Err())
	require.Equal(t, 3, retry.AttemptNumber(ctxs[2]))
	_, err = read(out.Body)
	require.NoError(t, err)
	require.Error(t, ctxs[2].Err())
}

func TestARequestSignedByAWrongClockIsSignedAnew(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*awsretry.Attempt)
		made   int
	}{
		"by default":                              {func(*awsretry.Attempt) {}, 2},
		"by a client that keeps no skew":          {func(sdk *awsretry.Attempt) { sdk.ClientSkew = nil }, 2},
		"a client that disables it is left alone": {func(sdk *awsretry.Attempt) { sdk.DisableClockSkewCorrection = true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				theirs := time.Now().Add(time.Hour)
				skewed := retrytest.Answer{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Date", theirs.UTC().Format(http.TimeFormat))
					w.WriteHeader(403)
					_, _ = io.WriteString(w, apiError("RequestTimeTooSkewed"))
				})}
				server := retrytest.NewPipeServer(t, []retrytest.Answer{skewed, {}}[:row.made])
				sdk := func(stack *middleware.Stack) error {
					step, _ := stack.Finalize.Get("Retry")
					row.change(step.(*awsretry.Attempt))
					return nil
				}
				_, err := get(t.Context(), clientOf(config(server, sdk, option(doubling))))
				require.Equal(t, row.made == 1, err != nil)
				signed, err := time.Parse("20060102T150405Z", server.Requests()[row.made-1].Header.Get("X-Amz-Date"))
				require.NoError(t, err)
				require.Equal(t, row.made == 2, signed.Sub(theirs).Abs() <= time.Second)
			})
		})
	}
}

func TestTheCallersDeadlineIsNoAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := doubling
		p.AttemptTimeout = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := fetch(ctx, t, p, retrytest.Answer{Takes: time.Hour})
		require.ErrorIs(t, r.err, retry.DeadlinePassed)
		require.NotErrorIs(t, r.err, retry.ErrAttemptTimeout)
	})
}

// TestTheSDKsOwnStepMakesEachAttempt is the first to fail if an upgrade changes the SDK's retry step, which the option
// replaces by one that makes a single attempt. `.ci/run sdks` runs this test with the oldest and newest SDK.
func TestTheSDKsOwnStepMakesEachAttempt(t *testing.T) {
	skewed := retrytest.Answer{Status: 403, Body: apiError("RequestTimeTooSkewed"), Header: http.Header{"Date": {"Sat, 01 Jan 2000 01:00:00 GMT"}}}
	hinted := retrytest.Answer{Status: 503, Body: apiError("SlowDown"), Header: http.Header{"X-Amz-Retry-After": {"60000"}}}
	for name, row := range map[string]struct {
		answers []retrytest.Answer
		calls   int
	}{
		"one attempt":                {[]retrytest.Answer{{}}, 1},
		"three attempts":             {[]retrytest.Answer{slowDown, slowDown, {}}, 3},
		"a hint is waited for by Do": {[]retrytest.Answer{hinted, {}}, 2},
		"a wrong clock":              {[]retrytest.Answer{skewed, {}}, 2},
		"a run that fails":           {[]retrytest.Answer{slowDown, slowDown, slowDown, slowDown}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				var seen middleware.Metadata
				spy := func(stack *middleware.Stack) error {
					return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("spy", func(
						ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
					) (out middleware.InitializeOutput, _ middleware.Metadata, err error) {
						out, seen, err = next.HandleInitialize(ctx, in)
						return out, seen, err
					}), middleware.Before)
				}
				began, waits := time.Now(), time.Duration(0)
				p := doubling
				p.Observe = func(_ context.Context, e retry.Event) { waits += e.Decision.Delay }
				server := retrytest.NewPipeServer(t, row.answers)
				_, err := clientOf(config(server, spy, option(p))).DeleteObject(t.Context(),
					&s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
				require.Equal(t, row.answers[row.calls-1].Status == 503, err != nil)
				require.Len(t, server.Requests(), row.calls)
				results, ok := awsretry.GetAttemptResults(seen)
				require.True(t, ok)
				require.Len(t, results.Results, 1, "of the last attempt")
				require.Equal(t, err != nil, results.Results[0].Err != nil)
				require.False(t, results.Results[0].Retried)
				require.NotNil(t, results.Results[0].GetRawResponse())
				require.Equal(t, waits, time.Since(began), "the step does not wait")
			})
		})
	}
}

// meters is a metrics.MeterProvider that sums the SDK's counters.
type meters struct{ counting }

// counting is its metrics.Meter.
type counting struct {
	metrics.Meter
	counts map[string]int64
}

type counter struct {
	counts map[string]int64
	name   string
}

func (m *meters) Meter(string, ...metrics.MeterOption) metrics.Meter { return &m.counting }

func (m *counting) Int64Counter(name string, _ ...metrics.InstrumentOption) (metrics.Int64Counter, error) {
	return counter{m.counts, name}, nil
}

func (c counter) Add(_ context.Context, n int64, _ ...metrics.RecordMetricOption) {
	c.counts[c.name] += n
}

func TestTheSDKsMetricsCountTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{slowDown, slowDown, {}})
		m := &meters{counting{metrics.NopMeterProvider{}.Meter(""), map[string]int64{}}}
		_, err := get(t.Context(), clientOf(config(server, option(doubling))), func(o *s3.Options) { o.MeterProvider = m })
		require.NoError(t, err)
		require.Equal(t, int64(3), m.counts["client.call.attempts"])
		require.Equal(t, int64(2), m.counts["client.call.errors"])
	})
}

// stuck is a body that cannot be rewound once a server has answered.
type stuck struct {
	*strings.Reader
	server *retrytest.Server
}

func (b *stuck) Seek(offset int64, whence int) (int64, error) {
	if len(b.server.Requests()) > 0 {
		return 0, errors.New("stuck")
	}
	return b.Reader.Seek(offset, whence)
}

func TestTheBodyOfARequest(t *testing.T) {
	for name, row := range map[string]struct {
		body     func(*retrytest.Server) io.Reader
		requests int
		text     string // of the error
		answered bool   // it has the SDK's error of the last attempt, which the SDK loses, after a wait
	}{
		"is sent again from its beginning": {body: func(*retrytest.Server) io.Reader { return strings.NewReader("hello") }, requests: 3},
		"is sent once if it cannot be rewound": {body: func(*retrytest.Server) io.Reader { return io.MultiReader(strings.NewReader("hello")) },
			requests: 1, text: "(not repeated: the request's body cannot be rewound)", answered: true},
		"ends the run if its rewinding fails": {body: func(server *retrytest.Server) io.Reader { return &stuck{strings.NewReader("hello"), server} },
			requests: 1, text: "stuck"},
	} {
		inBubble(t, name, func(t *testing.T) {
			server := retrytest.NewPipeServer(t, []retrytest.Answer{slowDown, slowDown, {}}[:row.requests])
			_, err := clientOf(config(server, option(doubling))).PutObject(t.Context(),
				&s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: row.body(server), ContentLength: aws.Int64(5)},
				s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware), // which would rewind the body
				func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired })
			require.Len(t, server.Requests(), row.requests)
			for _, r := range server.Requests() {
				require.Equal(t, "hello", r.Body)
			}
			if row.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, retry.TerminalError)
			require.ErrorContains(t, err, row.text)
			var api smithy.APIError
			require.Equal(t, row.answered, errors.As(err, &api))
		})
	}
}

func TestUnderOneAttemptAnOperationIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.ErrorIs(t, fetch(retry.OneAttempt(t.Context()), t, doubling, slowDown).err, retry.RetriesDisabled)
	})
}

func TestTheSDKsOwnSettingsHaveNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{slowDown, slowDown, {}})
		_, err := get(t.Context(), clientOf(config(server, option(doubling))), func(o *s3.Options) {
			o.Retryer = aws.NopRetryer{}
			o.RetryMaxAttempts = 1
		})
		require.NoError(t, err)
	})
}

func TestPresigningIsLeftAlone(t *testing.T) {
	server := retrytest.NewPipeServer(t, nil)
	client := s3.NewPresignClient(clientOf(config(server, option(doubling))))
	signed, err := client.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	require.NoError(t, err)
	require.Contains(t, signed.URL, "X-Amz-Signature")
}

func TestAForeignRetryStepIsRefused(t *testing.T) {
	foreign := func(stack *middleware.Stack) error {
		_, err := stack.Finalize.Swap("Retry", middleware.FinalizeMiddlewareFunc("Retry", nil))
		return err
	}
	_, err := get(t.Context(), clientOf(config(retrytest.NewPipeServer(t, nil), foreign, option(doubling))))
	require.ErrorContains(t, err, `retryaws: the step "Retry" is a`)
}

func TestTheGateIsAskedBeforeEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, opens := doubling, time.Now().Add(time.Minute)
		p.Gate = func(context.Context) time.Duration { return time.Until(opens) }
		r := fetch(t.Context(), t, p, slowDown, ok)
		require.NoError(t, r.err)
		require.Equal(t, time.Minute+100*time.Millisecond, r.took)
	})
}

func TestTheSDKsLogOfRetriesIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{slowDown, {}})
		var text bytes.Buffer
		cfg := config(server, option(doubling))
		cfg.ClientLogMode = aws.LogRetries
		cfg.Logger = logging.NewStandardLogger(&text)
		_, err := get(t.Context(), clientOf(cfg))
		require.NoError(t, err)
		require.Empty(t, text.String(), "it would call each failed attempt unretryable")
	})
}

func TestAClientOverLoopbackIsThrottledByManyGoroutines(t *testing.T) {
	const callers = 20
	server := retrytest.NewServer(t, []retrytest.Answer{{Status: 503, Body: apiError("SlowDown"), Times: callers}, {Body: "object", Times: callers}})
	p := retry.Policy{
		MaxAttempts: retry.Unlimited, AttemptTimeout: time.Minute, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 100, Burst: 100}),
		Backoff: retry.Backoff{Base: time.Millisecond, Cap: 5 * time.Millisecond, Jitter: retry.FullJitter},
	}
	client := clientOf(config(server, option(p)))
	var done sync.WaitGroup
	texts := make([]string, callers)
	for i := range texts {
		done.Go(func() { texts[i], _ = get(t.Context(), client) })
	}
	done.Wait()
	for _, text := range texts {
		require.Equal(t, "object", text)
	}
	require.Len(t, server.Requests(), 2*callers)
}
