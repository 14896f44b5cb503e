// Command hedging reads 10,000 prices from a replica that is slow now and then, without and with hedges to another
// replica, and draws how long the reads took.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// replica stands for a server. It answers 95 % of the requests within 5 to 15 ms, 4 % within 50 to 200 ms and 1 % within 1
// to 2 s, whatever another replica does.
type replica struct {
	seed     uint64
	requests atomic.Uint64
}

func (r *replica) RoundTrip(req *http.Request) (*http.Response, error) {
	random := rand.New(rand.NewPCG(r.seed, r.requests.Add(1)))
	between := func(lo, hi float64) time.Duration {
		return time.Duration((lo + random.Float64()*(hi-lo)) * float64(time.Millisecond))
	}
	latency := between(5, 15)
	switch n := random.IntN(100); {
	case n == 99:
		latency = between(1000, 2000)
	case n >= 95:
		latency = between(50, 200)
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// reads returns the durations of 10,000 requests, shortest first. A hundred are under way at once.
func reads(rt http.RoundTripper) (took []time.Duration, err error) {
	const callers, each = 100, 100
	client := &http.Client{Transport: rt}
	var group sync.WaitGroup
	var mu sync.Mutex
	for range callers {
		group.Go(func() {
			for range each {
				began := time.Now()
				resp, failed := client.Get("http://prices.internal/")
				if failed == nil {
					failed = resp.Body.Close()
				}
				mu.Lock()
				took = append(took, time.Since(began))
				err = cmp.Or(err, failed)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return took, err
}

// measure writes the picture to w.
func measure(w io.Writer) error {
	bare := &replica{seed: 1}
	first := &replica{seed: 2}
	second := &replica{seed: 3}
	tracker, err := retryhedge.NewTracker(retryhedge.TrackerConfig{Share: 0.05, Max: time.Second})
	if err != nil {
		return err
	}
	policy := retry.Inline()
	policy.Budget = retry.NewBudget(retry.BudgetConfig{})
	hedged := &retryhttp.Transport{
		Base: first, Policy: policy,
		Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Tracker: tracker}, Base: second},
	}
	without, err := reads(bare)
	if err != nil {
		return err
	}
	with, err := reads(hedged)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "one # more is twice as many reads: # is 1 read, ## are 2 or 3, ### are 4 to 7, and so on")
	fmt.Fprintln(w, "reads of up to   without hedges          with hedges")
	var from [2]int
	for _, most := range []time.Duration{6, 8, 11, 15, 30, 60, 125, 250, 500, 1000, 2000} {
		var counts [2]int
		for i, took := range [][]time.Duration{without, with} {
			to, _ := slices.BinarySearch(took, most*time.Millisecond+1)
			counts[i] = to - from[i]
			from[i] = to
		}
		line(w, most*time.Millisecond, counts[0], bar(counts[0]), counts[1], bar(counts[1]))
	}
	for _, share := range []float64{0.5, 0.99, 0.999} {
		at := func(took []time.Duration) time.Duration {
			return took[int(share*float64(len(took)))].Round(time.Millisecond)
		}
		line(w, fmt.Sprintf("%v%% within", share*100), at(without), "", at(with), "")
	}
	line(w, "requests", bare.requests.Load(), "", first.requests.Load()+second.requests.Load(), "")
	return nil
}

func line(w io.Writer, name, without any, picture string, with any, pictureWith string) {
	text := fmt.Sprintf("%14v %8v %-14s %8v %s", name, without, picture, with, pictureWith)
	fmt.Fprintln(w, strings.TrimRight(text, " "))
}

// bar returns a # for each doubling up to n, so that one # more stands for twice as many reads.
func bar(n int) string { return strings.Repeat("#", bits.Len(uint(n))) }

func main() {
	if err := measure(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
