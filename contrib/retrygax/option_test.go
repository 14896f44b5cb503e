package retrygax_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygax"
)

// doubling waits 100ms, 200ms, 400ms.
var doubling = retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * time.Millisecond}}

// unset is the line about a policy without a Classify.
const unset = "Policy.Classify is not set: RESOURCE_EXHAUSTED without a hint ends the call, even if the client's own settings repeat it"

var unavailable = status.Error(codes.Unavailable, "try later")

// later returns an error of a server that says when to come back.
func later(code codes.Code, wait time.Duration) error {
	st, err := status.New(code, "quota").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	if err != nil {
		panic(err)
	}
	return st.Err()
}

// scripted is a server of one method that fails by a script, and notes when it was called.
type scripted struct {
	health.UnimplementedHealthServer
	errs  []error
	takes time.Duration
	calls []time.Time
}

func (s *scripted) Check(context.Context, *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	s.calls = append(s.calls, time.Now())
	time.Sleep(s.takes) // virtual time
	if len(s.calls) <= len(s.errs) {
		return nil, s.errs[len(s.calls)-1]
	}
	return &health.HealthCheckResponse{}, nil
}

// waits returns the times between the calls.
func (s *scripted) waits() (waits []time.Duration) {
	for i, at := range s.calls[1:] {
		waits = append(waits, at.Sub(s.calls[i]))
	}
	return waits
}

// invoke calls the server by gRPC and through gax, as a generated client does.
func (s *scripted) invoke(ctx context.Context, t *testing.T, options ...gax.CallOption) error {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	health.RegisterHealthServer(server, s)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	defer conn.Close()
	client := health.NewHealthClient(conn)
	return gax.Invoke(ctx, func(ctx context.Context, settings gax.CallSettings) error {
		_, err := client.Check(ctx, &health.HealthCheckRequest{}, settings.GRPC...)
		return err
	}, options...)
}

// What the README says: the waits between the calls that arrived, and those of the policy.
func TestTheWaitsAreThePolicys(t *testing.T) {
	jittered, decorrelated := doubling, doubling
	jittered.Jitter, jittered.Rand = retry.FullJitter, func() float64 { return 0.5 }
	decorrelated.Jitter, decorrelated.Rand = retry.DecorrelatedJitter, func() float64 { return 0.5 }
	ms := time.Millisecond
	for name, row := range map[string]struct {
		policy retry.Policy
		errs   []error
		takes  time.Duration
		want   []time.Duration
		code   codes.Code
	}{
		"exponential":             {policy: doubling, errs: []error{unavailable, unavailable, unavailable}, want: []time.Duration{100 * ms, 200 * ms, 400 * ms}},
		"full jitter":             {policy: jittered, errs: []error{unavailable, unavailable, unavailable}, want: []time.Duration{50 * ms, 100 * ms, 200 * ms}},
		"decorrelated":            {policy: decorrelated, errs: []error{unavailable, unavailable, unavailable}, want: []time.Duration{200 * ms, 350 * ms, 575 * ms}},
		"list":                    {policy: retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{ms, time.Hour}}}, errs: []error{unavailable, unavailable}, want: []time.Duration{ms, time.Hour}},
		"hint":                    {policy: doubling, errs: []error{later(codes.Unavailable, 3*time.Second)}, want: []time.Duration{3 * time.Second}},
		"hint of quota":           {policy: doubling, errs: []error{later(codes.ResourceExhausted, time.Second)}, want: []time.Duration{time.Second}},
		"hint of 0":               {policy: doubling, errs: []error{later(codes.ResourceExhausted, 0)}, code: codes.ResourceExhausted},
		"short hint":              {policy: doubling, errs: []error{later(codes.Unavailable, ms)}, want: []time.Duration{100 * ms}},
		"attempts":                {policy: doubling, errs: []error{unavailable, unavailable, unavailable, unavailable}, want: []time.Duration{100 * ms, 200 * ms, 400 * ms}, code: codes.Unavailable},
		"TTL":                     {policy: doubling.Or(retry.Policy{TTL: 400 * ms}), errs: []error{unavailable, unavailable, unavailable}, want: []time.Duration{100 * ms, 200 * ms}, code: codes.Unavailable},
		"TTL, from the beginning": {policy: doubling.Or(retry.Policy{TTL: 400 * ms}), takes: 350 * ms, errs: []error{unavailable}, code: codes.Unavailable},
		"reset after":             {policy: doubling.Or(retry.Policy{ResetAfter: time.Second}), takes: time.Second, errs: []error{unavailable, unavailable, unavailable}, want: []time.Duration{1100 * ms, 1100 * ms, 1100 * ms}},
		"long hint":               {policy: doubling.Or(retry.Policy{MaxHint: time.Second}), errs: []error{later(codes.Unavailable, 2*time.Second)}, code: codes.Unavailable},
		"disabled":                {policy: retry.Policy{Disabled: true}, errs: []error{unavailable}, code: codes.Unavailable},
		"quota":                   {policy: doubling, errs: []error{status.Error(codes.ResourceExhausted, "quota")}, code: codes.ResourceExhausted},
		"not found":               {policy: doubling, errs: []error{status.Error(codes.NotFound, "no")}, code: codes.NotFound},
		"own classifier":          {policy: doubling.Or(retry.Policy{Classify: retry.Otherwise(retry.Retryable)}), errs: []error{status.Error(codes.NotFound, "not yet")}, want: []time.Duration{100 * ms}},
		"no budget":               {policy: doubling.Or(retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1})}), errs: []error{unavailable, unavailable}, want: []time.Duration{100 * ms}, code: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				option, _, err := retrygax.Option(row.policy)
				require.NoError(t, err)
				server := &scripted{errs: row.errs, takes: row.takes}
				err = server.invoke(t.Context(), t, option)
				require.Equal(t, row.code, status.Code(err), "%v", err)
				require.Equal(t, row.want, server.waits())
			})
		})
	}
}

func TestAnOptionServesManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		option, lost, err := retrygax.Option(doubling)
		require.NoError(t, err)
		require.Equal(t, []string{unset}, lost)
		for range 3 {
			server := &scripted{errs: []error{unavailable, unavailable, unavailable}}
			require.NoError(t, server.invoke(t.Context(), t, option))
			require.Equal(t, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}, server.waits())
		}
	})
}

func TestErrorsOfREST(t *testing.T) {
	busy := func(code int, after string) error {
		return &googleapi.Error{Code: code, Header: http.Header{"Retry-After": {after}}}
	}
	detailed := func(delay, after string) error {
		return &googleapi.Error{Code: 503, Header: http.Header{"Retry-After": {after}}, Body: `{"error": {"code": 503, "status": "UNAVAILABLE",
			"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "` + delay + `"}]}}`}
	}
	for name, row := range map[string]struct {
		err   error
		waits time.Duration
		ok    bool
	}{
		"503":                  {busy(503, ""), 100 * time.Millisecond, true},
		"503 with a hint":      {busy(503, "2"), 2 * time.Second, true},
		"429 with a hint":      {busy(429, "2"), 2 * time.Second, true},
		"503 with a detail":    {detailed("3s", ""), 3 * time.Second, true},
		"the longer detail":    {detailed("3s", "2"), 3 * time.Second, true},
		"the longer header":    {detailed("3s", "4"), 4 * time.Second, true},
		"429":                  {busy(429, ""), 0, false},
		"404":                  {busy(404, ""), 0, false},
		"an error of no API":   {context.DeadlineExceeded, 0, false},
		"a mark":               {retry.Transient(context.DeadlineExceeded), 100 * time.Millisecond, true},
		"a mark of the longer": {retry.Permanent(busy(503, "")), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			option, _, err := retrygax.Option(doubling)
			require.NoError(t, err)
			var settings gax.CallSettings
			option.Resolve(&settings)
			pause, ok := settings.Retry().Retry(row.err)
			require.Equal(t, row.ok, ok)
			require.Equal(t, row.waits, pause)
		})
	}
}

// Each row has a field that gax cannot express, the line that says so, and a call that shows it.
func TestWhatIsLost(t *testing.T) {
	called := false
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		lost   string
		takes  time.Duration
		check  func(*testing.T, retry.Policy)
	}{
		"Name": {
			change: func(p *retry.Policy) { p.Name = "secrets" },
			lost:   `Policy.Name "secrets": a gax.Retryer has no place for it`,
		},
		"AttemptTimeout": {
			change: func(p *retry.Policy) { p.AttemptTimeout = time.Second },
			lost:   "Policy.AttemptTimeout 1s: an attempt lasts until the deadline of the call",
			takes:  time.Minute,
		},
		"Budget": {
			change: func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 5}) },
			lost:   "Policy.Budget is set: successes do not fund it, and it is not paid back if the retry does not come",
			check:  func(t *testing.T, p retry.Policy) { require.InDelta(t, 4, p.Budget.Tokens(), 0) },
		},
		"Pay": {
			change: func(p *retry.Policy) {
				p.Pay = func(context.Context, retry.Decision) bool { called = true; return false }
			},
			lost: "Policy.Pay is set: it is not called",
		},
		"Gate": {
			change: func(p *retry.Policy) {
				p.Gate = func(context.Context) time.Duration { called = true; return time.Hour }
			},
			lost: "Policy.Gate is set: it is not called",
		},
		"Observe": {
			change: func(p *retry.Policy) { p.Observe = func(context.Context, retry.Event) { called = true } },
			lost:   "Policy.Observe is set: it is not called",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				row.change(&p)
				option, lost, err := retrygax.Option(p)
				require.NoError(t, err)
				require.Equal(t, []string{row.lost, unset}, lost)
				server := &scripted{errs: []error{unavailable}, takes: row.takes}
				require.NoError(t, server.invoke(t.Context(), t, option))
				require.Equal(t, []time.Duration{row.takes + 100*time.Millisecond}, server.waits())
				require.False(t, called)
				if row.check != nil {
					row.check(t, p)
				}
			})
		})
	}
}

func TestADeadlineInTheWaitCostsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		option, _, err := retrygax.Option(doubling)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		server := &scripted{errs: []error{unavailable}}
		require.Equal(t, context.DeadlineExceeded, server.invoke(ctx, t, option))
	})
}

func TestAPolicyThatDoesNotValidateIsRefused(t *testing.T) {
	_, _, err := retrygax.Option(retry.Policy{TTL: -1})
	require.ErrorContains(t, err, "retry: Policy.TTL -1ns is negative")
}
