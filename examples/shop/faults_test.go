//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is what goes wrong.
type kind string

const (
	kill          kind = "kill"       // a process, by SIGKILL; another one starts at the end
	suspend       kind = "suspend"    // a process, by SIGSTOP, until SIGCONT
	restart       kind = "restart"    // PostgreSQL, as after a crash
	cutBefore     kind = "cut before" // each new connection
	down          kind = "down"       // and all others
	cutDuring     kind = "cut during" // each connection after some bytes: in a header, or in the middle of a body
	cutAfter      kind = "cut after"  // connections on which an answer comes back
	commitBefore  kind = "commit not sent"
	commitAfter   kind = "commit without answer"
	commitSilence kind = "no answer from a commit on"
	slow          kind = "slow"
	blackHole     kind = "no answer"
	vanish        kind = "no packets" // connections that are there die for ever, and neither side learns of it
	answer503     kind = "503"
	answer429     kind = "429"
	badCatalog    kind = "bad catalog" // the file with the policies is broken, and later a changed one
)

// fault is one row of a schedule.
type fault struct {
	begin, end time.Duration // since the beginning of the storm
	kind       kind
	target     string // a process, or a link
	after      int    // see rule
	delay      time.Duration
	hint       int
	outage     bool // the shop or its mails stop
	steps      int  // of spread: how many it lasts; 0 means 1
}

func (f fault) String() string {
	s := fmt.Sprintf("%6.1fs to %6.1fs  %s %s", f.begin.Seconds(), f.end.Seconds(), f.kind, f.target)
	switch f.kind {
	case cutDuring:
		s += fmt.Sprintf(", within %d bytes", f.after)
	case slow:
		s += fmt.Sprintf(", by %s", f.delay)
	case answer503, answer429:
		s += fmt.Sprintf(", Retry-After %d", f.hint)
	}
	return s
}

// The processes and the links between them.
var (
	processes = []string{"mail", "prices1", "prices2", "stock", "orders", "shop"} // in the order in which they start
	links     = []string{"customers-shop", "shop-orders", "shop-prices1", "shop-prices2", "orders-stock", "orders-db", "stock-db", "orders-mail"}
)

// recovery is how long after a fault the shop must serve again.
func (f fault) recovery() time.Duration {
	if f.target == "postgres" || f.kind == vanish { // pgx keeps the place of a dead connection in its pool for 15s
		return 20 * time.Second
	}
	return 5 * time.Second
}

// stretch is how many seconds count in the time of the alerts for one of a storm: a minute is a quarter of an hour. A short
// fault and its recovery last less than two minutes of theirs, and more than two minutes pass until the next one.
const stretch = 15

// each is the storm of seed 0: every kind of fault, on the links on which it can lose or double work. What follows a fault
// has little time to recover, as in a storm. First come those that need a budget with tokens, for a hedge or a late retry.
var each = []fault{
	{kind: slow, target: "shop-orders", delay: 600 * time.Millisecond, steps: 2}, // long enough for a hedge, which a write must not have
	{kind: commitAfter, target: "orders-db"},
	{kind: commitAfter, target: "stock-db"},
	{kind: blackHole, target: "orders-db", steps: 2},          // longer than the TTL of a transaction
	{kind: cutAfter, target: "shop-orders"},                   // the order is placed, and a client without a key must not repeat it
	{kind: cutDuring, target: "shop-prices1", after: 1 << 16}, // in the middle of a download
	{kind: blackHole, target: "orders-stock"},                 // in doubt over gRPC
	{kind: commitBefore, target: "orders-db"},
	{kind: cutAfter, target: "orders-stock"},
	{kind: answer429, target: "shop-orders", hint: 1},
	{kind: down, target: "orders-mail"}, // the jobs wait
	{kind: suspend, target: "orders"},   // with jobs under way
	{kind: answer503, target: "orders-mail", hint: 1},
	{kind: badCatalog, target: "catalog"},
	{kind: cutBefore, target: "shop-prices1"},
	{kind: kill, target: "orders"},
	{kind: commitSilence, target: "stock-db"},
	{kind: commitSilence, target: "orders-db"}, // in doubt over HTTP
	{kind: vanish, target: "shop-orders"},
	{kind: restart, target: "postgres"},
}

// spread returns the faults of each, one after the other in a storm that lasts so long.
func spread(long time.Duration) []fault {
	faults := slices.Clone(each)
	steps := 0
	for i := range faults {
		faults[i].steps = max(faults[i].steps, 1)
		steps += faults[i].steps
	}
	step, at := (long-8*time.Second)/time.Duration(steps), time.Second
	for i := range faults {
		f := &faults[i]
		f.begin = at
		at += time.Duration(f.steps) * step
		f.end = at - step/3
	}
	return faults
}

// schedule returns the faults of a storm. It is a function of its arguments alone. One to three faults at a time last up
// to three seconds, and then there is time to recover. Near its end, and in a longer storm once for two minutes before,
// there is an outage. Seed 0 has no chance in it: see each.
func schedule(seed uint64, long time.Duration) (faults []fault) {
	if seed == 0 {
		return spread(long)
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	ms := func(from, to int) time.Duration { return time.Duration(from+rnd.IntN(to-from)) * time.Millisecond }
	// Each kind comes before any comes again.
	var bag []kind
	draw := func() kind {
		if len(bag) == 0 {
			bag = []kind{kill, kill, suspend, suspend, restart, cutBefore, down, cutDuring, cutDuring, cutAfter, cutAfter, commitBefore,
				commitAfter, commitSilence, slow, blackHole, blackHole, vanish, vanish, answer503, answer429, badCatalog}
			rnd.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		k := bag[0]
		bag = bag[1:]
		return k
	}
	pause := 10 * time.Second
	halts := []fault{{begin: long / 3, end: ms(23000, 25000)}}
	if long >= 5*time.Minute {
		pause = 13 * time.Second
		halts = []fault{{begin: long / 4, end: 2 * time.Minute}, {begin: long * 2 / 3, end: ms(23000, 25000)}}
	}
	for at := ms(1000, 2000); ; {
		var slot []fault
		if len(halts) > 0 && at >= halts[0].begin {
			f := outage(rnd)
			f.begin, f.end = at, at+halts[0].end
			slot, halts = []fault{f}, halts[1:]
		} else {
			for n := 1 + rnd.IntN(3); n > 0; n-- {
				f := fault{begin: at + ms(0, 500), kind: draw(), hint: rnd.IntN(3)}
				f.end = f.begin + ms(500, 2500)
				f.target, f.after, f.delay = target(f.kind, rnd), 1<<(4+rnd.IntN(14)), ms(20, 400)
				if f.kind == restart {
					f.end = f.begin + ms(200, 1500)
				}
				if slices.ContainsFunc(slot, func(g fault) bool { return g.target == f.target }) {
					continue // one rule at a time for each link
				}
				slot = append(slot, f)
			}
		}
		for _, f := range slot {
			at = max(at, f.end)
		}
		if at+6*time.Second > long {
			return faults
		}
		faults, at = append(faults, slot...), at+pause
	}
}

// outage draws a fault without which the shop serves no customer, or no mail comes.
func outage(rnd *rand.Rand) fault {
	f := fault{outage: true, kind: outages[rnd.IntN(len(outages))]}
	for {
		if f.target = target(f.kind, rnd); f.kind == vanish {
			f.target = links[rnd.IntN(len(links))]
		}
		if !strings.HasSuffix(f.target, "prices2") && (f.kind != suspend || f.target != "postgres") {
			return f
		}
	}
}

// stops reports whether a fault of this kind can be an outage.
func stops(k kind) bool { return slices.Contains(outages, k) }

var outages = []kind{kill, suspend, restart, down, blackHole, vanish, answer503}

// target draws what a fault of a kind can hit.
func target(k kind, rnd *rand.Rand) string {
	one := func(of []string) string { return of[rnd.IntN(len(of))] }
	switch k {
	case kill:
		return one(processes)
	case suspend:
		return one(append(slices.Clone(processes), "postgres"))
	case restart:
		return "postgres"
	case commitBefore, commitAfter, commitSilence:
		return one([]string{"orders-db", "stock-db"})
	case answer503, answer429:
		return one(slices.DeleteFunc(slices.Clone(links), func(l string) bool {
			return strings.HasSuffix(l, "-db") || strings.HasSuffix(l, "-stock")
		}))
	case badCatalog:
		return "catalog"
	case vanish: // of the others, gRPC finds a dead connection after ten seconds, and pgx's pool after fifteen
		return one([]string{"customers-shop", "shop-orders", "shop-prices1", "shop-prices2", "stock-db", "orders-mail"})
	}
	return one(links)
}
