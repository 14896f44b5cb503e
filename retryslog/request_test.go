package retryslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
	"github.com/retrygo/retry/retryslog"
	"github.com/retrygo/retry/retrytest"
)

// says is an error that describes its request, like those of retryhttp and contrib/retrygrpc.
type says struct{ value slog.Value }

func (says) Error() string          { return "503" }
func (s says) LogValue() slog.Value { return s.value }

var (
	ofHTTP = says{slog.GroupValue(slog.String("method", "GET"), slog.String("host", "shop.test"), slog.String("path", "/orders/{id}"), slog.Int("status", 503))}
	unsent = says{slog.GroupValue(slog.String("method", "GET"), slog.String("reason", "conn_refused"))}
	ofGRPC = says{slog.GroupValue(slog.String("method", "/shop.Orders/Get"), slog.String("code", "UNAVAILABLE"))}
)

type vague struct{}

func (vague) Error() string        { return "503" }
func (vague) LogValue() slog.Value { panic("no value") }

func TestRequests(t *testing.T) {
	const http, grpc = " request.method=GET request.host=shop.test request.path=/orders/{id}", " request.method=/shop.Orders/Get"
	nested := retry.Policy{}.NewError(t.Context(), retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 2}, retry.After(time.Second, ofHTTP))
	for _, row := range []struct {
		name      string
		err       error
		asked     string // of a failure
		succeeded string // of the success that follows
	}{
		{"a request of HTTP", ofHTTP, http + " request.status=503", http},
		{"a request of HTTP without a response", unsent, " request.method=GET request.reason=conn_refused", " request.method=GET"},
		{"a call of gRPC", ofGRPC, grpc + " request.code=UNAVAILABLE", grpc},
		{"a request below a mark and errors.Join", retry.After(time.Second, errors.Join(errDown, ofHTTP)), http + " request.status=503", http},
		{"a request of a run within the attempt", retry.After(time.Second, nested), http + " request.status=503", http},
		{"an error that says nothing", errDown, "", ""},
		{"a value that is not a group", says{slog.StringValue("GET")}, "", ""},
		{"an empty group", says{slog.GroupValue()}, "", ""},
		{"a LogValue method that panics", vague{}, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p := retry.Policy{MaxAttempts: 2, Observe: retryslog.Observe(textTo(&b), retryslog.Options{})}
				_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{try(row.err), try(row.err)}))
				_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{try(row.err), try(nil)}))
				lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
				require.Len(t, lines, 4)
				for i, want := range []string{row.asked, row.asked, row.asked, row.succeeded} {
					_, request, found := strings.Cut(lines[i], " request.")
					require.Equal(t, want != "", found, lines[i])
					if found {
						require.Equal(t, want, " request."+request)
					}
				}
			})
		})
	}
}

// A value of a server's can be as large as it likes, and so can its keys and their number.
func TestRequestsAreBounded(t *testing.T) {
	huge := strings.Repeat("x", 1<<16)
	many := make([]any, 1000)
	for i := range many {
		many[i] = slog.String(fmt.Sprint("k", i), huge)
	}
	for name, value := range map[string]slog.Value{
		"a text":              slog.GroupValue(slog.String("body", huge)),
		"any":                 slog.GroupValue(slog.Any("body", []byte(huge)), slog.Any("map", map[string]string{huge: huge})),
		"an error":            slog.GroupValue(slog.Any("err", errors.New(huge))),
		"a LogValuer":         slog.GroupValue(slog.Any("inner", says{slog.StringValue(huge)})),
		"a key":               slog.GroupValue(slog.String(huge, "v")),
		"many":                slog.GroupValue(slog.Group("all", many...)),
		"many in many groups": slog.GroupValue(slog.Group("a", slog.Group("b", many...), slog.Group("c", many...))),
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			event := retry.Event{Decision: retry.Decision{Status: retry.WaitingRetry}, Attempt: retry.Attempt{Number: 1, Err: says{value}}}
			retryslog.Observe(slog.New(slog.NewJSONHandler(&b, nil)), retryslog.Options{})(t.Context(), event)
			require.Less(t, b.Len(), 50_000)
			require.Contains(t, b.String(), `"request":{`)

			b.Reset()
			retryslog.Observe(slog.New(slog.NewJSONHandler(&b, nil)), retryslog.Options{MaxErrorText: retry.Unlimited})(t.Context(), event)
			require.Contains(t, b.String(), `"request":{`)
		})
	}
}

func TestARequestHas32AttributesAtMost(t *testing.T) {
	for n, want := range map[int]int{31: 31, 32: 32, 33: 32} {
		attrs := make([]slog.Attr, n)
		for i := range attrs {
			attrs[i] = slog.Int("k"+strconv.Itoa(i), i)
		}
		var b bytes.Buffer
		event := retry.Event{Decision: retry.Decision{Status: retry.WaitingRetry}, Attempt: retry.Attempt{Number: 1, Err: says{slog.GroupValue(attrs...)}}}
		retryslog.Observe(textTo(&b), retryslog.Options{})(t.Context(), event)
		require.Equal(t, want, strings.Count(b.String(), " request.k"), n)
	}
}

// A panic of an error's As method passes through, as in retry.Do.
func TestAPanicOfAsPassesThrough(t *testing.T) {
	for name, run := range map[string]func(error){
		"retry.Do": func(err error) {
			_ = retry.Do(t.Context(), retry.Policy{}, func(context.Context) error { return err })
		},
		"retryslog": func(err error) {
			retryslog.Observe(textTo(&bytes.Buffer{}), retryslog.Options{})(t.Context(),
				retry.Event{Decision: retry.Decision{Status: retry.WaitingRetry}, Attempt: retry.Attempt{Err: err}})
		},
	} {
		t.Run(name, func(t *testing.T) { require.PanicsWithValue(t, "no As", func() { run(brokenAs{}) }) })
	}
}

type brokenAs struct{}

func (brokenAs) Error() string { return "503" }
func (brokenAs) As(any) bool   { panic("no As") }

// If an errgroup cancels, the cause is another call's error.
func TestTheRequestIsThatOfTheLastAttempt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ofGRPC)
	stopped := ended(retry.Canceled, retry.CallerCanceled, 2)
	for _, row := range []struct {
		last error
		want string
	}{
		{ofHTTP, "error=503 cause=503 request.method=GET request.host=shop.test request.path=/orders/{id} request.status=503\n"},
		{errDown, "error=503 cause=503\n"},
		{nil, "error=503 request.method=/shop.Orders/Get request.code=UNAVAILABLE\n"},
	} {
		stopped.Err = retry.Policy{}.NewError(ctx, *stopped.Outcome, row.last)
		var b bytes.Buffer
		retryslog.Observe(textTo(&b), retryslog.Options{})(t.Context(), stopped)
		require.True(t, strings.HasSuffix(b.String(), row.want), b.String())
	}
}

// job is the value that package retryjob puts into the context of Observe.
var job = says{slog.GroupValue(slog.String("id", "order-7"), slog.String("kind", "order"))}

func TestTheJobOfTheContextIsOnEachOfItsLines(t *testing.T) {
	ctx := context.WithValue(t.Context(), retryshell.ReportedJob{}, job)
	for _, row := range []struct {
		event retry.Event
		group string
		want  string
	}{
		{retried, "", "WARN"},
		{recovery, "", "DEBUG"},
		{canceled, "", "WARN"},
		{failed, "retry", "ERROR"},
		{terminal, "", "ERROR"}, // without a caller, the log and the dead letter are the only reports
		{givenUpBelow(1, errDown), "", "ERROR"},
	} {
		var b bytes.Buffer
		retryslog.Observe(textTo(&b), retryslog.Options{Group: row.group})(ctx, row.event)
		require.True(t, strings.HasPrefix(b.String(), "level="+row.want+" "), b.String())
		prefix := " "
		if row.group != "" {
			prefix += row.group + "."
		}
		require.True(t, strings.HasSuffix(b.String(), prefix+"job.id=order-7"+prefix+"job.kind=order\n"), b.String())
	}
	for _, job := range []any{"order-7", says{slog.StringValue("order-7")}} {
		var b bytes.Buffer
		retryslog.Observe(textTo(&b), retryslog.Options{})(context.WithValue(t.Context(), retryshell.ReportedJob{}, job), failed)
		require.NotContains(t, b.String(), "job")
	}
}

// A LogValue method may return a slice that its error keeps.
func TestTheRequestsOwnGroupIsNotChanged(t *testing.T) {
	err := says{slog.GroupValue(slog.Int("status", 503), slog.String("method", "PUT"))}
	var k kept
	e := recovery
	e.Outcome = &retry.Outcome{Status: retry.Succeeded, Attempts: 2, History: []retry.Attempt{{Err: unsent}, {Err: err}}}
	retryslog.Observe(slog.New(&k), retryslog.Options{})(t.Context(), e)
	require.Equal(t, []slog.Attr{slog.Int("status", 503), slog.String("method", "PUT")}, err.value.Group())
	list := k.attrs(t)
	require.Equal(t, []slog.Attr{slog.String("method", "PUT")}, list[len(list)-1].Value.Group())
}
