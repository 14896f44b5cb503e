package fit_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/fit"
)

// ../cli/testdata/metrics.txt was written by retryotel's real exporter, from sample.go beside it. It has 1,500 runs in 30s
// whose attempts fail with the probability 0.05 and take a log-normal time with the median 30ms.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../cli/testdata/" + name)
	require.NoError(t, err)
	return data
}

func TestReadFitsWhatWasExported(t *testing.T) {
	got, err := fit.Read("price", 30*time.Second, sample(t, "metrics.txt"))
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
	got, err := fit.Read("", time.Minute, []byte(head+before), []byte(after))
	require.NoError(t, err)
	require.Equal(t, 1.0, got.Rate())
	require.Equal(t, 0.2, got.Failure(), "20 of 100: a terminal answer is none that is retried")
	require.Equal(t, 200*time.Millisecond, got.Mean)
	require.Equal(t, "1 runs/s (60 in 1m0s), 20 % of 100 attempts failed, an attempt takes lognormal 500ms 990ms, mean 200ms", got.String())

	_, err = fit.Read("", time.Minute, []byte(after), []byte(head+before))
	require.ErrorContains(t, err, "a counter fell between the scrapes")
}

func TestReadRefuses(t *testing.T) {
	text := sample(t, "metrics.txt")
	for _, row := range []struct{ name, policy, data, err string }{
		{"several policies and none named", "", string(text), "which policy? The metrics have price, search"},
		{"a policy that is not there", "mail", string(text), "which policy? The metrics have price, search"},
		{"metrics of something else", "", "go_goroutines 7\n", "there is no retry_runs_total"},
		{"no metrics", "", "", "there is no retry_runs_total"},
		{"text that is none", "", "<html>", "text format parsing error"},
		{"runs of which none succeeded", "", "retry_runs_total{retry_policy=\"a\"} 5\n", "no run succeeded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := fit.Read(row.policy, time.Second, []byte(row.data))
			require.ErrorContains(t, err, row.err)
		})
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("../cli/testdata/metrics.txt")
	require.NoError(f, err)
	f.Add(data[:min(len(data), 4000)])
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := fit.Read("", time.Minute, data)
		if err == nil {
			require.Positive(t, got.Rate())
			require.NotContains(t, got.String(), "NaN")
		}
	})
}
