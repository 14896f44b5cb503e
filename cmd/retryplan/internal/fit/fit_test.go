package fit_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/fit"
)

// ../cli/testdata/metrics.txt is what retryotel's real exporter wrote; sample.go beside it made it: 1,500 runs in 30s whose attempts fail with the probability 0.05 and take a log-normal time with the median
// 30ms.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../cli/testdata/" + name)
	require.NoError(t, err)
	return data
}

func TestReadFitsWhatWasExported(t *testing.T) {
	got, err := fit.Read("price", fit.Query{}, 30*time.Second, sample(t, "metrics.txt"))
	require.NoError(t, err)
	require.InDelta(t, 50, got.Rate(), 0.5)
	require.InDelta(t, 0.05, got.Failure(), 0.02)
	require.InDelta(t, 36, got.Mean.Seconds()*1e3, 4, "the mean of the log-normal is 30ms·exp(0.6²/2), and a timer is late")
	require.InDelta(t, 30, got.Duration.At(0.5).Seconds()*1e3, 6, "the bucket reaches from 25ms to 50ms")
}

func TestTwoScrapesAreSubtracted(t *testing.T) {
	before := `retry_runs_total{retry_policy="a"} 100
retry_attempts_total{retry_policy="a",retry_class="succeeded"} 100
retry_attempt_duration_seconds_bucket{retry_policy="a",retry_class="succeeded",le="1"} 100
retry_attempt_duration_seconds_sum{retry_policy="a",retry_class="succeeded"} 50
retry_attempt_duration_seconds_count{retry_policy="a",retry_class="succeeded"} 100
`
	head := "# TYPE retry_attempt_duration_seconds histogram\n"
	after := head + `retry_runs_total{retry_policy="a"} 160
retry_attempts_total{retry_policy="a",retry_class="succeeded"} 160
retry_attempts_total{retry_policy="a",retry_class="retryable"} 20
retry_attempts_total{retry_policy="a",retry_class="terminal"} 20
retry_attempt_duration_seconds_bucket{retry_policy="a",retry_class="succeeded",le="1"} 160
retry_attempt_duration_seconds_sum{retry_policy="a",retry_class="succeeded"} 62
retry_attempt_duration_seconds_count{retry_policy="a",retry_class="succeeded"} 160
`
	got, err := fit.Read("", fit.Query{}, time.Minute, []byte(head+before), []byte(after))
	require.NoError(t, err)
	require.Equal(t, 1.0, got.Rate())
	require.Equal(t, 0.2, got.Failure(), "20 of 100: a terminal answer is none that is retried")
	require.Equal(t, 200*time.Millisecond, got.Mean)
	require.Equal(t, "1 runs/s (60 in 1m0s), 20 % of 100 attempts failed, an attempt takes lognormal 500ms 990ms, mean 200ms", got.String())

	_, err = fit.Read("", fit.Query{}, time.Minute, []byte(after), []byte(head+before))
	require.ErrorContains(t, err, "a counter fell between the scrapes")
}

func TestReadRefuses(t *testing.T) {
	text := sample(t, "metrics.txt")
	for _, row := range []struct{ name, policy, data, err string }{
		{"several policies and none named", "", string(text), "which policy? The metrics have price, search"},
		{"a policy that is not there", "mail", string(text), "which policy? The metrics have price, search"},
		{"metrics of something else", "", "go_goroutines 7\n", "no series is the counter"},
		{"no metrics", "", "", "no series is the counter"},
		{"text that is none", "", "<html>", "text format parsing error"},
		{"runs of which none succeeded", "", "retry_runs_total{retry_policy=\"a\"} 5\n", "no run succeeded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := fit.Read(row.policy, fit.Query{}, time.Second, []byte(row.data))
			require.ErrorContains(t, err, row.err)
		})
	}
}

// What a program exports of its own, by a query: with labels, as OpenMetrics, and in milliseconds.
func TestAnyMetricsByName(t *testing.T) {
	text := `# TYPE requests counter
requests_total{service="pay",code="200"} 900 1700000000.123 # {trace_id="a b"} 1.0 1700000000.5
requests_total{service="pay",code="503"} 100
requests_total{service="mail",code="200"} 7
# TYPE build info
build_info{version="1"} 1
# TYPE took_ms histogram
took_ms_bucket{service="pay",le="10"} 500 # {trace_id="x"} 3.1
took_ms_bucket{service="pay",le="100"} 1000
took_ms_bucket{service="pay",le="+Inf"} 1000
took_ms_sum{service="pay"} 20000
took_ms_count{service="pay"} 1000
# EOF
`
	pay := `{service="pay"}`
	for _, row := range []struct {
		q                Query
		runs, failed     float64
		median, p99, err string
	}{
		{q: Query{Calls: "requests_total" + pay, Errors: `requests_total{service="pay",code=~"5.."}`}, runs: 1000, failed: 100},
		{q: Query{Calls: "requests" + pay, Errors: `requests{service!="mail", code!~"2..|404"}`, Took: "took_ms" + pay}, runs: 1000, failed: 100, median: "10ms", p99: "98.2ms"},
		{q: Query{Took: "took_ms"}, runs: 1000, median: "10ms", p99: "98.2ms"},
		{q: Query{Calls: "took_ms_count"}, runs: 1000},
		{q: Query{Calls: "requests_total"}, runs: 1007},
		{q: Query{Calls: "requests_total{code=200}"}, err: "is not NAME or NAME{label"},
		{q: Query{Calls: "a b"}, err: "is not NAME or NAME{label"},
		{q: Query{Calls: `a{b=~"("}`}, err: "missing closing )"},
		{q: Query{Calls: "other"}, err: "no series is the counter"},
	} {
		got, err := fit.Read("", fit.Query(row.q), 10*time.Second, []byte(text))
		if row.err != "" {
			require.ErrorContains(t, err, row.err)
			continue
		}
		require.NoError(t, err, "%+v", row.q)
		require.Equal(t, row.runs/10, got.Rate(), "%+v", row.q)
		require.Equal(t, row.failed, got.Failed)
		if row.median != "" {
			require.Equal(t, "lognormal "+row.median+" "+row.p99, got.Duration.String())
			require.Equal(t, 20*time.Millisecond, got.Mean)
		}
	}
}

type Query = fit.Query

func TestSeries(t *testing.T) {
	mean, most, err := fit.Series([]byte("time,rate\n2026-11-24T00:00:00Z,10\n2026-11-24T00:00:01Z,\n2026-11-24T00:00:02Z,\"30\"\r\n"))
	require.NoError(t, err)
	require.Equal(t, []float64{20, 30}, []float64{mean, most})
	for text, want := range map[string]string{"rate\n5\nx\n": `line 3: "x" is not a rate`, "-1": `line 1: "-1" is not a rate`, "rate": "no rate above 0", "": "no rate above 0", "1\nInf": "is not a rate"} {
		_, _, err := fit.Series([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("../cli/testdata/metrics.txt")
	require.NoError(f, err)
	f.Add(data[:min(len(data), 4000)])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _ = fit.Series(data)
		_, _ = fit.Read("", Query{Calls: string(data), Took: "a"}, time.Minute, data)
		got, err := fit.Read("", fit.Query{}, time.Minute, data)
		if err == nil {
			require.Positive(t, got.Rate())
			require.NotContains(t, got.String(), "NaN")
		}
	})
}
