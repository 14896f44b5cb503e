package wire_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// jsonOf returns the JSON of v.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := wire.JSON(v)
	require.NoError(t, err)
	return string(data)
}

func TestWhatStandsForNoneIsLeftOut(t *testing.T) {
	require.JSONEq(t, `{"deadline_seconds":1.5,"clients":0,"rate":2,"capacity":100,"workers":0,"failure":0,
		"service":"exponential 6ms","trigger":"surge 1h 3 at 1m",
		"budget":{"ratio":0.25,"burst":11,"initial":0,"trickle_seconds":0}}`,
		jsonOf(t, retryplan.Fleet{
			Deadline: 1500 * time.Millisecond, Rate: 2, Capacity: 100,
			Service: retryplan.Exponential(6 * time.Millisecond),
			Trigger: retryplan.Trigger{Kind: retryplan.Surge, From: time.Minute, For: time.Hour, Factor: 3},
			Budget:  &retry.BudgetConfig{Ratio: .25, Burst: 11},
		}))
	require.JSONEq(t, `{"text":"retries disabled, exponential 5s ×2, cap 1h","go":"retry.Policy{Disabled: true}","document":{"retries_enabled":false}}`,
		jsonOf(t, retry.Policy{Disabled: true}))
}

// A verdict is its count, its sentence and its bounds.
func TestAVerdictSaysWhatItIs(t *testing.T) {
	v := retryplan.Verdict{
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Second}, Seeds: 20, Back: 20,
		Recoveries: []time.Duration{time.Second, 2 * time.Second}, Watch: time.Minute, Drawn: 4,
	}
	require.JSONEq(t, `{"trigger":"stall 1s","seeds":20,"back":20,"drains":0,"calm_lost":0,"calm_failed":0,"recoveries_seconds":[1,2],"watch_seconds":60,"drawn":4,
		"text":"came back in 20 of 20 simulations of a stall of 1s, median 1s, worst of 2 2s; at most 14 % of others do not",
		"lost_at_least":0,"lost_at_most":`+fmt.Sprint(1-math.Pow(.05, .05))+`}`, jsonOf(t, v))
}

func TestReadTakesEveryFieldOfAChain(t *testing.T) {
	want := retryplan.Chain{
		Layers: []retryplan.Layer{
			{Policy: retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second}}},
			{Budget: &retry.BudgetConfig{Ratio: .25, Burst: 1, Initial: 2, Trickle: 3 * time.Second}, Clients: 4, Failure: .5, Capacity: 5, Workers: 6},
		},
		PassOn: true, DoNotRetry: true, Deadline: time.Minute, Rate: 7,
		Trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, For: time.Hour, Factor: .5},
	}
	var got retryplan.Chain
	require.NoError(t, wire.Read([]byte(`{"layers": [
		{"policy": {"max_attempts": 3, "base": "1s"}},
		{"budget": {"ratio": 0.25, "burst": 1, "initial": 2, "trickle": "3s"}, "clients": 4, "failure": 0.5, "capacity": 5, "workers": 6}
	], "pass_on": true, "do_not_retry": true, "deadline": "1m", "rate": 7, "trigger": "capacity_cut 1h 0.5"}`), &got))
	require.Equal(t, want, got)

	got = retryplan.Chain{}
	require.NoError(t, wire.Read([]byte(`{"layers": [{"budget": null, "clients": null}]}`), &got))
	require.Equal(t, retryplan.Chain{Layers: []retryplan.Layer{{}}}, got)
}

func TestReadRefuses(t *testing.T) {
	for document, want := range map[string]string{
		`{"layers": [{"client": 3}]}`:                           `unknown object member name "client" within "/layers/0"`,
		`{"layers": [{}, {"clients": "3"}]}`:                    `JSON string into Go int within "/layers/1/clients"`,
		`{"layers": [{}, {"clients": 1.5}]}`:                    `JSON number 1.5 into Go int within "/layers/1/clients"`,
		`{"layers": [{"policy": {"base": 5}}]}`:                 `"/layers/0/policy`,
		`{"layers": [{"policy": {"base": "2s", "cap": "1s"}}]}`: `within "/layers/0/policy": retryconf: cap 1s is below base 2s`,
		`{"layers": {}}`:                                        `JSON object into Go []retryplan.Layer within "/layers"`,
		`{"deadline": "soon"}`:                                  `within "/deadline": time: invalid duration "soon"`,
		`{"trigger": "blip 10s"}`:                               `within "/trigger": "blip" is not one of stall, outage, slowdown, capacity_cut, surge, failing`,
		`{"trigger": 3}`:                                        `JSON number into Go string within "/trigger"`,
		`{"layers": [{"budget": {"ratio": 1, "x":2}}]}`:         `unknown object member name "x" within "/layers/0/budget"`,
		`{"rate": 1, "rate": 2}`:                                `duplicate object member name "rate"`,
		`[]`:                                                    `JSON array`,
		`{} {}`:                                                 `invalid character '{' after top-level value`,
	} {
		require.ErrorContains(t, wire.Read([]byte(document), new(retryplan.Chain)), want, document)
	}
}

func TestAPolicyIsEveryFormInWhichItCanBeCopied(t *testing.T) {
	require.JSONEq(t, `{"name": "a<b", "text": "2 attempts, exponential 5s ×2, cap 1h, TTL 1h: 5s (5s in all)",
		"go": "retry.Policy{Name: \"a<b\", MaxAttempts: 2, TTL: time.Hour}", "document": {"name": "a<b", "max_attempts": 2, "ttl": "1h0m0s"}}`,
		jsonOf(t, retry.Policy{Name: "a<b", MaxAttempts: 2, TTL: time.Hour, Rand: func() float64 { return 0 }}))
}

func TestFieldsFindsEachField(t *testing.T) {
	var bad retry.FieldErrors
	bad.Refuse("retryplan.Server.Queue", -2, "is below -1")
	bad.Append(retry.Policy{TTL: -time.Minute}.Validate())
	require.Equal(t, []*retry.FieldError{
		{Package: "retryplan", Field: "Server.Queue", Value: "-2", Rule: "is below -1"}, {Field: "Policy.TTL", Value: "-1m", Rule: "is negative"},
	}, wire.Fields(fmt.Errorf("in a document: %w", bad.Err())))
	require.Empty(t, wire.Fields(errors.New("another")))
}

// TestWhatIsNotFinite holds that a figure that JSON cannot express does not lose all the others.
func TestWhatIsNotFinite(t *testing.T) {
	require.JSONEq(t, `{"calm":null,"outage":null,"hang":1,"stored":0}`, jsonOf(t, retryplan.NodeLoad{Calm: math.Inf(1), Outage: math.NaN(), Hang: 1}))
	require.JSONEq(t, `[{"code":"x","level":"note"}]`, jsonOf(t, []retryplan.Finding{{Code: "x", Level: retryplan.Note}}))
	require.JSONEq(t, `[]`, jsonOf(t, []retryplan.Finding{}))
}

// TestPlanSaysWhatThePlanIs compares the figures of a plan one by one.
func TestPlanSaysWhatThePlanIs(t *testing.T) {
	p, err := retryplan.New(retry.Policy{MaxAttempts: 3, TTL: 4 * time.Second, Backoff: retry.Backoff{Base: time.Second, Factor: 4}}, retryplan.Model{Failure: []float64{.5}})
	require.NoError(t, err)
	require.JSONEq(t, `{"attempts":[`+
		`{"starts":1,"succeeds":0.5,"earliest_seconds":0,"latest_seconds":0},`+
		`{"wait":{"min_seconds":1,"mean_seconds":1,"p50_seconds":1,"p90_seconds":1,"p99_seconds":1,"max_seconds":1},"starts":0.5,"succeeds":0.25,"earliest_seconds":1,"latest_seconds":1},`+
		`{"wait":{"min_seconds":4,"mean_seconds":4,"p50_seconds":4,"p90_seconds":4,"p99_seconds":4,"max_seconds":4},"starts":0,"succeeds":0,"earliest_seconds":5,"latest_seconds":5,"never":"ttl_elapsed"}],`+
		`"truncated":false,"can_start":2,"total_wait":{"min_seconds":5,"mean_seconds":5,"p50_seconds":5,"p90_seconds":5,"p99_seconds":5,"max_seconds":5},`+
		`"elapsed":{"min_seconds":0,"mean_seconds":0.5,"p50_seconds":0,"p90_seconds":1,"p99_seconds":1,"max_seconds":1},`+
		`"success":0.75,"load":1.5,"worst_case_seconds":1,"endings":{"succeeded":0.75,"ttl_elapsed":0.25}}`, jsonOf(t, p))
}

// TestWhatHasNoBound holds that the largest Duration, which stands for any beyond it, is no figure.
func TestWhatHasNoBound(t *testing.T) {
	p, err := retryplan.New(retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 200 * 365 * 24 * time.Hour, Cap: 200 * 365 * 24 * time.Hour}}, retryplan.Model{})
	require.NoError(t, err)
	data := jsonOf(t, p)
	require.Contains(t, data, `"worst_case_seconds":null`)
	require.Contains(t, data, `"latest_seconds":null`)
	require.Contains(t, data, `"max_seconds":null`)
	require.NotContains(t, data, "9223372036")
}

// TestResultSaysWhatTheResultIs holds that every field of a point has its name.
func TestResultSaysWhatTheResultIs(t *testing.T) {
	point := retryplan.Point{
		Start: 2 * time.Second, Offered: 1, Attempts: 2, Rejected: 4, TimedOut: 5, Goodput: 6, Queue: 8,
	}
	r := retryplan.Result{
		Step: 500 * time.Millisecond, Series: []retryplan.Point{{}, point}, Runs: 5, Attempts: 6, Rejected: 7, Wasted: 8, Nodes: []int{6},
		Endings: map[retry.Reason]int{0: 3, retry.AttemptsExhausted: 2}, Unfinished: 9, Recovery: 2 * time.Second,
		Trigger: retryplan.Trigger{Kind: retryplan.Outage, From: time.Minute, For: time.Second},
	}
	require.JSONEq(t, `{"runs":5,"attempts":6,"hedges":0,"rejected":7,"wasted":8,"nodes":[6],"endings":{"attempts_exhausted":2,"succeeded":3},
		"unfinished":9,"trigger":"outage 1s at 1m","recovery_seconds":2,"step_seconds":0.5,
		"series":[{"start_seconds":0,"offered":0,"attempts":0,"rejected":0,"timed_out":0,"goodput":0,"queue":0},
			{"start_seconds":2,"offered":1,"attempts":2,"rejected":4,"timed_out":5,"goodput":6,"queue":8}]}`,
		jsonOf(t, &r))
	r.Recovery = -1
	require.Contains(t, jsonOf(t, &r), `"recovery_seconds":null`)
}

func TestKeys(t *testing.T) {
	for field, key := range map[string]string{"MaxAttempts": "max_attempts", "TTL": "ttl", "P99": "p99", "CanStart": "can_start"} {
		require.Equal(t, key, wire.Snake(field))
	}
}
