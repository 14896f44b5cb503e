package serviceconfig_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retrygrpc/serviceconfig"
	"github.com/retrygo/retry/retryhedge"
)

func TestHedgesOf(t *testing.T) {
	tracker, err := retryhedge.NewTracker(retryhedge.TrackerConfig{Min: 3 * time.Millisecond})
	require.NoError(t, err)
	for _, row := range []struct {
		name   string
		h      retryhedge.Policy
		o      serviceconfig.Options
		config string
		lost   []string
	}{
		{"a fixed delay", retryhedge.Policy{Delay: 50 * time.Millisecond}, serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0.05s","nonFatalStatusCodes":["UNAVAILABLE"]}}]}`, nil},
		{"methods, codes, a timeout", retryhedge.Policy{Delay: time.Second, MaxCalls: 3},
			serviceconfig.Options{Methods: []string{"/a.B/C"}, Codes: []codes.Code{codes.Aborted}, Timeout: time.Minute},
			`{"methodConfig":[{"name":[{"service":"a.B","method":"C"}],"timeout":"60s","hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"1s","nonFatalStatusCodes":["ABORTED"]}}]}`, nil},
		{"all that is lost", retryhedge.Policy{Name: "n", Tracker: tracker, MaxCalls: 8, Budget: retry.NewBudget(retry.BudgetConfig{}),
			Classify: retrygrpc.OnCode(retry.Retryable, codes.Internal), Observe: func(context.Context, retryhedge.Event) {}}, serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":5,"hedgingDelay":"0.003s","nonFatalStatusCodes":["INTERNAL","UNAVAILABLE"]}}]}`,
			[]string{"Name n: a service config has no place for it",
				"Tracker hedge 5% of calls, after 3ms to 10s: the delay stays that of now, 3ms",
				"MaxCalls 8: the client makes 5, which is its limit",
				"Budget is set: its figures cannot be read, and so hedges are free without Options.Budget",
				"Classify is set: gRPC judges by the code alone, and these do not end the other calls: INTERNAL UNAVAILABLE",
				"Observe is set: it is not called"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			config, lost, err := serviceconfig.HedgesOf(row.h, row.o)
			require.NoError(t, err)
			require.Equal(t, row.config, config)
			require.Equal(t, row.lost, lost)
			method := "/a.B/C"
			h, ok, err := serviceconfig.ParseHedges(config, method)
			require.NoError(t, err)
			require.True(t, ok)
			again, _, err := serviceconfig.HedgesOf(h, row.o)
			require.NoError(t, err)
			require.Equal(t, row.config, again, "what is read is what was written")
		})
	}
	_, lost, err := serviceconfig.HedgesOf(retryhedge.Policy{Delay: 1}, serviceconfig.Options{Budget: &retry.BudgetConfig{}})
	require.NoError(t, err)
	require.NotEmpty(t, lost, "of the budget")
	_, _, err = serviceconfig.HedgesOf(retryhedge.Policy{}, serviceconfig.Options{})
	require.EqualError(t, err, "retryhedge: Policy.Delay 0s makes no hedges")
	_, _, err = serviceconfig.HedgesOf(retryhedge.Policy{Delay: -1}, serviceconfig.Options{Timeout: -1})
	require.EqualError(t, err, "retryhedge: Policy.Delay -1ns is negative; serviceconfig: Options.Timeout -1ns is negative")
}

func TestParseHedges(t *testing.T) {
	const config = `{"methodConfig":[
		{"name":[{"service":"a.B","method":"C"}],"hedgingPolicy":{"maxAttempts":9,"hedgingDelay":"0.1s","nonFatalStatusCodes":["unavailable"]}},
		{"name":[{"service":"a.B"}],"retryPolicy":{"maxAttempts":2}},
		{"name":[{}],"hedgingPolicy":{"maxAttempts":2}}]}`
	for _, row := range []struct {
		method string
		ok     bool
		delay  time.Duration
		calls  int
	}{{"/a.B/C", true, 100 * time.Millisecond, 5}, {"/a.B/D", false, 0, 0}, {"/x.Y/Z", true, 1, 2}} {
		h, ok, err := serviceconfig.ParseHedges(config, row.method)
		require.NoError(t, err)
		require.Equal(t, row.ok, ok, row.method)
		require.Equal(t, row.delay, h.Delay)
		require.Equal(t, row.calls, h.MaxCalls)
		if row.method == "/a.B/C" {
			require.Equal(t, retry.Retryable, h.Classify(status.Error(codes.Unavailable, "")))
			require.Equal(t, retry.Terminal, h.Classify(status.Error(codes.Internal, "")))
		}
	}
	_, ok, err := serviceconfig.ParseHedges(`{}`, "/a.B/C")
	require.NoError(t, err)
	require.False(t, ok)
	for _, row := range []struct{ config, method, err string }{
		{`{`, "/a.B/C", "serviceconfig: ParseHedges: unexpected end of JSON input"},
		{`{}`, "C", `serviceconfig: ParseHedges.method "C" is not of the form /package.Service/Method`},
		{`{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":1,"hedgingDelay":"5ms","nonFatalStatusCodes":["NOPE"]}}]}`, "/a.B/C",
			`serviceconfig: hedgingPolicy.maxAttempts 1 is below 2; hedgingPolicy.hedgingDelay "5ms" is not a number of seconds such as "0.05s"; ` +
				`hedgingPolicy.nonFatalStatusCodes[0] "NOPE" is not a code`},
	} {
		_, _, err := serviceconfig.ParseHedges(row.config, row.method)
		require.EqualError(t, err, row.err)
	}
}
