package retryplan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryplan"
)

// The mechanisms of other libraries that the reference tests use are held against vectors from those libraries' own
// tests and sources: a table that is reproduced with a wrong throttle would prove nothing.

func TestReferenceBrookerBucketPaysForFourRetries(t *testing.T) {
	b := newBrookerBucket()
	b.Send(0, 1)
	for range 4 {
		require.True(t, b.Retry(0, 1))
	}
	require.False(t, b.Retry(0, 1))
}

func TestReferenceGRPCThrottleVector(t *testing.T) {
	g := &grpcThrottle{ratio: 100, limit: 10_000, tokens: 10_000}
	step := func(ok bool, thousandths int, retry bool) {
		g.Done(0, 0, 1, ok)
		require.Equal(t, thousandths, g.tokens)
		require.Equal(t, retry, g.Retry(0, 1))
	}
	for _, left := range []int{9000, 8000, 7000, 6000} {
		step(false, left, true)
	}
	step(false, 5000, false)
	step(true, 5100, true)
	step(false, 4100, false)
	for i := range 9 {
		step(true, 4200+100*i, false)
	}
	step(true, 5100, true)
}

func TestReferenceAWSQuotaVectors(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens int
		// replies of the server to one run each, '+' for success, and the quota after each of them, -1 for a refusal
		runs []string
		want [][]int
	}{
		{"two failures, then success", 500, []string{"--+"}, [][]int{{486, 472, 486}}},
		{"enough for one retry", 14, []string{"--"}, [][]int{{0, -1}}},
		{"a rest that is too small", 20, []string{"--"}, [][]int{{6, -1}}},
		{"a refund is the last acquisition only", 30, []string{"--+", "-+"}, [][]int{{16, 2, 16}, {2, 16}}},
		{"a success without retries earns one", 14, []string{"+"}, [][]int{{15}}},
		{"never above 500", 500, []string{"+"}, [][]int{{500}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &awsQuota{cost: 14, tokens: c.tokens}
			for i, replies := range c.runs {
				for j, reply := range replies {
					q.Done(0, 0, j+1, reply == '+')
					got := q.tokens
					if reply == '-' {
						if got = -1; q.Retry(0, j+1) {
							got = q.tokens
						}
					}
					require.Equal(t, c.want[i][j], got, "run %d, attempt %d", i+1, j+1)
				}
			}
		})
	}
}

func TestReferenceFinagleBudgetVectors(t *testing.T) {
	b := newFinagleBudget(10*time.Second, 10, 0.2)
	require.Equal(t, 100, b.balance(0))
	for range 10 {
		b.Send(0, 1)
	}
	require.Equal(t, 102, b.balance(0))
	for range 102 {
		require.True(t, b.Retry(0, 1))
	}
	for _, now := range []time.Duration{0, time.Second, 5 * time.Second, 9 * time.Second, 9999 * time.Millisecond} {
		require.False(t, b.Retry(now, 1))
	}
	require.Equal(t, 100, b.balance(10*time.Second))

	b = newFinagleBudget(10*time.Second, 0, 0.2)
	for range 4 {
		b.Send(0, 1)
	}
	require.False(t, b.Retry(0, 1))
	b.Send(0, 1)
	require.True(t, b.Retry(0, 1))
	require.False(t, b.Retry(0, 1))
}

// The reserve of a Finagle budget is a burst in every ttl, not a steady rate.
func TestReferenceFinagleBudgetIsASawtooth(t *testing.T) {
	b := newFinagleBudget(10*time.Second, 10, 0.2)
	var got []int
	for second := range 20 {
		allowed := 0
		for range 100 {
			b.Send(time.Duration(second)*time.Second, 1)
			if b.Retry(time.Duration(second)*time.Second, 1) {
				allowed++
			}
		}
		got = append(got, allowed)
	}
	tooth := []int{100, 40, 20, 20, 20, 20, 20, 20, 20, 20}
	require.Equal(t, append(tooth, tooth...), got)
}

func TestReferenceAdaptiveThrottleVectors(t *testing.T) {
	for _, c := range []struct{ requests, accepts, k, want float64 }{
		{100, 100, 2, 0},
		{100, 50, 2, 0},
		{100, 40, 2, 0.198020},
		{100, 0, 2, 0.990099},
		{1000, 100, 2, 0.799201},
		{100, 80, 1.1, 0.118812},
		{1, 0, 2, 0.5},
	} {
		require.InDelta(t, c.want, rejection(c.requests, c.accepts, c.k), 5e-7)
	}
}

func TestReferencePollyV2Vectors(t *testing.T) {
	for _, c := range []struct {
		u    []float64
		want []float64 // seconds
	}{
		{[]float64{0}, []float64{0, 1.377182, 1.460067, 2.865850, 5.717807, 11.430272}},
		{[]float64{.5}, []float64{.897405, 1.093004, 2.035748, 4.045979, 8.083632, 16.163663}},
		{[]float64{.9, .1}, []float64{1.274272, .211379, 3.834241, .793834, 15.206653, 3.171451}},
	} {
		delay := pollyV2(time.Second, time.Minute)
		var prev time.Duration
		for i, want := range c.want {
			prev = delay(i+1, prev, c.u[i%len(c.u)])
			// the last digits of a delay carry u
			require.InDelta(t, want, prev.Seconds(), 2e-4)
		}
	}
}

var _ = []retryplan.Throttle{
	&requestBucket{}, &brookerBucket{}, &failureShare{}, &grpcThrottle{}, &awsQuota{}, &finagleBudget{}, &adaptiveThrottle{},
}
