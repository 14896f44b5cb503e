//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seed  = flag.Uint64("seed", 0, "of the schedule of faults; 0 means each kind once")
	long  = flag.Duration("long", 0, "how long the storm lasts; 0 means that there is none")
	rate  = flag.Int("rate", 12, "orders a second")
	slack = flag.Int("slack", 3, "how much longer than it should a recovery may take: 1 on a quiet machine")
	only  = flag.String("only", "", "a fault to have in place of all, such as \"no answer,orders-db\"")
	page  = flag.String("report", "", "the file of the report, HTML")
	keep  = flag.String("keep", "", "a folder for the journals")
)

func TestNothingIsLostInAStorm(t *testing.T) {
	if *long == 0 {
		t.Skip("no storm: see README.md for its flags")
	}
	t.Parallel()
	faults := schedule(*seed, *long)
	if kindOf, of, ok := strings.Cut(*only, ","); ok {
		for i := range faults {
			faults[i].kind, faults[i].target = kind(kindOf), of
			faults[i].outage = faults[i].outage && stops(faults[i].kind)
		}
		faults = slices.CompactFunc(faults, func(next, last fault) bool { return next.begin < last.end+time.Second }) // one at a time
	}
	t.Logf("seed %d, %s: %d faults", *seed, *long, len(faults))
	for _, f := range faults {
		t.Log(f)
	}
	h := build(t, *seed)
	defer h.keepJournals()
	j, err := openJournal(h.path("customers.jsonl"), "customers")
	require.NoError(t, err)
	defer j.file.Close()
	c := newCustomers(j, h.proxies["customers-shop"].in.Addr().String(), *seed)

	storm := &storm{house: h, faults: faults, held: map[string][2]int{}}
	storm.warmUp(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), *long)
	defer cancel()
	came := make(chan struct{})
	storm.began = time.Now()
	go func() { defer close(came); c.come(ctx, *rate) }()
	recorded := record(h, c.metrics, storm.began)
	storm.rage(ctx)
	<-came
	storm.ended = time.Now()
	a := storm.check(t, recorded)
	if *page != "" {
		require.NoError(t, a.report(*page, *seed))
	}
	a.verdict(t)
}

func TestTheSeedAloneDecidesTheSchedule(t *testing.T) {
	all := map[kind]bool{}
	for seed := range uint64(20) {
		faults := schedule(seed, 10*time.Minute)
		require.Equal(t, faults, schedule(seed, 10*time.Minute))
		require.NotEqual(t, faults, schedule(seed+1, 10*time.Minute))
		for _, f := range faults {
			all[f.kind] = true
			require.Less(t, f.begin, f.end)
			require.LessOrEqual(t, f.end+5*time.Second, 10*time.Minute)
		}
	}
	require.Len(t, all, 16)
}

func TestTheStormOfSeedZeroHasEachKind(t *testing.T) {
	kinds := map[kind]bool{}
	faults := schedule(0, 45*time.Second)
	for i, f := range faults {
		kinds[f.kind] = true
		require.Greater(t, f.end-f.begin, time.Second)
		if i > 0 {
			require.Greater(t, f.begin, faults[i-1].end, "one at a time")
		}
	}
	require.Len(t, kinds, 16)
}

// storm is a run of a schedule.
type storm struct {
	*house
	faults []fault
	began  time.Time
	ended  time.Time
	held   map[string][2]int // goroutines and files of each process before
}

// warmUp waits until River has a leader, which does more, and writes down what each process holds when it works.
func (s *storm) warmUp(t *testing.T, c *customers) {
	for i := range 5 {
		c.order(t.Context(), fmt.Sprintf("first%d", i), i, true)
	}
	_, ok := patient(time.Minute, func() bool {
		var leaders int
		err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM river_leader").Scan(&leaders)
		return err == nil && leaders == 1
	})
	require.True(t, ok, "River has no leader")
	time.Sleep(time.Second) // until it leads
	for _, name := range processes {
		_, ok := patient(time.Minute, func() bool {
			goroutines, files := s.holds(name)
			s.held[name] = [2]int{goroutines, files}
			return goroutines > 0
		})
		require.True(t, ok, "%s does not answer", name)
	}
}

// rage makes the faults happen, and returns when the last one and ctx have ended.
func (s *storm) rage(ctx context.Context) {
	type event struct {
		at    time.Duration
		index int
		begin bool
	}
	var events []event
	for i, f := range s.faults {
		events = append(events, event{f.begin, i, true}, event{f.end, i, false})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		time.Sleep(time.Until(s.began.Add(e.at)))
		f := &s.faults[e.index]
		if e.begin {
			f.begin = time.Since(s.began) // as it was
			s.house.begin(*f)
		} else {
			s.house.end(*f, e.index)
			f.end = time.Since(s.began)
		}
	}
	<-ctx.Done()
}
