package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
)

func TestSignificant(t *testing.T) {
	for _, row := range []struct {
		x    float64
		want string
	}{
		{0, "0"},
		{0.000123456, "0.000123"},
		{0.5, "0.500"},
		{0.9996, "1.00"},
		{1, "1.00"},
		{12.34, "12.3"},
		{99.96, "100"},
		{999.6, "1,000"},
		{1234, "1,230"},
		{1234567, "1,230,000"},
		{-1234.5, "−1,230"},
		{-0.25, "−0.250"},
		{math.Inf(1), "∞"},
		{math.Inf(-1), "−∞"},
		{math.NaN(), "?"},
	} {
		require.Equal(t, row.want, significant(row.x, 3), "%v", row.x)
	}
}

func TestExact(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1.125: "1.125", 1234.5: "1,234.5", -3: "−3", 123456: "123,456", math.Inf(1): "∞"} {
		require.Equal(t, want, exact(x))
	}
}

func TestTimes(t *testing.T) {
	require.Equal(t, "1.50", times(3, 2))
	require.Equal(t, "–", times(3, 0))
	require.Equal(t, "–", times(3, math.NaN()))
}

func TestSuperscript(t *testing.T) {
	require.Equal(t, "¹⁰²", superscript(102))
}

func TestMeasuredShowsWhatIsMissed(t *testing.T) {
	for _, row := range []struct {
		name    string
		verdict contest.Verdict
		want    string
	}{
		{"clearly missed", contest.Verdict{Target: contest.Target{Kind: contest.Ratio, Most: 1.05}, Measured: 1.2}, "1.20×"},
		{"narrowly missed", contest.Verdict{Target: contest.Target{Kind: contest.Ratio, Most: 1.05}, Measured: 1.05003}, "1.05003×"},
		{"narrowly met", contest.Verdict{Target: contest.Target{Kind: contest.Value, Most: 100}, Measured: 99.99, Met: true}, "100 ns/op"},
		{"never met", contest.Verdict{Target: contest.Target{Kind: contest.Ratio, Most: math.NaN()}, Measured: math.NaN()}, "?×"},
		{"not measured", contest.Verdict{Missing: "not measured on 8 cores"}, "not measured on 8 cores"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, measured(row.verdict, "ns/op"))
		})
	}
}

func TestAllowedIsExactUnlessThatIsLong(t *testing.T) {
	for most, want := range map[float64]string{1.05: "≤ 1.05×", 1.125: "≤ 1.125×", 1.0 / 15: "≤ 0.0667×"} {
		require.Equal(t, want, allowed(contest.Verdict{Target: contest.Target{Kind: contest.Best, Most: most}}, "ns/op"))
	}
}
