package retryconnect_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// retryInfo is an error detail google.rpc.RetryInfo with the delay.
func retryInfo(t *testing.T, delay time.Duration) *connect.ErrorDetail {
	d, err := proto.Marshal(durationpb.New(delay))
	require.NoError(t, err)
	return detail(t, "google.rpc.RetryInfo", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), d))
}

func detail(t *testing.T, name string, value []byte) *connect.ErrorDetail {
	d, err := connect.NewErrorDetail(&anypb.Any{TypeUrl: "type.googleapis.com/" + name, Value: value})
	require.NoError(t, err)
	return d
}

func TestWhatAServerSaysOfRetries(t *testing.T) {
	meta := func(pairs ...string) func(*connect.Error) {
		return func(err *connect.Error) {
			for i := 0; i < len(pairs); i += 2 {
				err.Meta().Add(pairs[i], pairs[i+1])
			}
		}
	}
	info := func(delay time.Duration) func(*connect.Error) {
		return func(err *connect.Error) { err.AddDetail(retryInfo(t, delay)) }
	}
	for name, row := range map[string]struct {
		code connect.Code
		says func(*connect.Error)
		wait time.Duration // 0: no retry
	}{
		"RetryInfo is a floor":                         {connect.CodeUnavailable, info(10 * time.Second), 10 * time.Second},
		"a RetryInfo below the backoff does not hurry": {connect.CodeUnavailable, info(time.Millisecond), time.Second},
		"RetryInfo allows RESOURCE_EXHAUSTED":          {connect.CodeResourceExhausted, info(10 * time.Second), 10 * time.Second},
		"a RetryInfo of 0 is no hint":                  {connect.CodeResourceExhausted, info(0), 0},
		"RetryInfo allows no other code":               {connect.CodeInternal, info(10 * time.Second), 0},
		"a negative RetryInfo is no hint":              {connect.CodeResourceExhausted, info(-time.Second), 0},
		"a RetryInfo beyond MaxHint ends the run":      {connect.CodeUnavailable, info(2 * time.Hour), 0},
		"pushback is a floor":                          {connect.CodeUnavailable, meta("Grpc-Retry-Pushback-Ms", "5000"), 5 * time.Second},
		"pushback allows RESOURCE_EXHAUSTED":           {connect.CodeResourceExhausted, meta("Grpc-Retry-Pushback-Ms", "3000"), 3 * time.Second},
		"a pushback of 0 is no hint":                   {connect.CodeResourceExhausted, meta("Grpc-Retry-Pushback-Ms", "0"), 0},
		"a negative pushback forbids":                  {connect.CodeUnavailable, meta("Grpc-Retry-Pushback-Ms", "-1"), 0},
		"a pushback of junk forbids":                   {connect.CodeUnavailable, meta("Grpc-Retry-Pushback-Ms", "soon"), 0},
		"Retry-After of a handler is a floor":          {connect.CodeResourceExhausted, meta("Retry-After", "7"), 7 * time.Second},
		"the longest hint wins":                        {connect.CodeUnavailable, func(err *connect.Error) { info(3 * time.Second)(err); meta("Retry-After", "9")(err) }, 9 * time.Second},
		"another detail is no hint":                    {connect.CodeResourceExhausted, func(err *connect.Error) { err.AddDetail(detail(t, "google.rpc.DebugInfo", nil)) }, 0},
		"a RetryInfo without a delay is no hint":       {connect.CodeResourceExhausted, func(err *connect.Error) { err.AddDetail(detail(t, "google.rpc.RetryInfo", nil)) }, 0},
		"a RetryInfo that is cut is no hint":           {connect.CodeResourceExhausted, func(err *connect.Error) { err.AddDetail(detail(t, "google.rpc.RetryInfo", []byte{0x0a, 0x05, 0x08})) }, 0},
		"a RetryInfo of another form is no hint":       {connect.CodeResourceExhausted, func(err *connect.Error) { err.AddDetail(detail(t, "google.rpc.RetryInfo", []byte{0x0a, 0x01, 0xff})) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
				fail := func(context.Context) error {
					err := connect.NewError(row.code, nil)
					row.says(err)
					return err
				}
				s := answers(fail)
				var want []time.Duration
				if row.wait > 0 {
					want = []time.Duration{row.wait}
				}
				unary, stream := s.start(t, protocol, upTo(2), retryconnect.Options{})
				for name, call := range map[string]func(context.Context) error{"unary": pings(unary), "stream": reads(stream)} {
					s.headers, s.at = nil, nil
					require.Equal(t, row.code, connect.CodeOf(call(t.Context())), name)
					require.Equal(t, want, s.waits(), name)
				}
			})
		})
	}
}

func TestTheHintOfARunIsTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answers(func(context.Context) error {
			err := connect.NewError(connect.CodeUnavailable, nil)
			err.AddDetail(retryInfo(t, 2*time.Hour))
			return err
		})
		unary, _ := s.start(t, nil, upTo(2), retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.HintTooLong)
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, 2*time.Hour, run.Hint())
		var failed *retryrpc.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 2*time.Hour, failed.Hint)
	})
}

// transport is a function as an HTTP client.
type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error)        { return f(r) }
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
