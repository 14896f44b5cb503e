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
	cutDuring     kind = "cut during" // each connection after some bytes: in a header, or in the middle of a body
	cutAfter      kind = "cut after"  // connections on which an answer comes back
	commitBefore  kind = "commit not sent"
	commitAfter   kind = "commit without answer"
	commitSilence kind = "no answer from a commit on"
	slow          kind = "slow"
	blackHole     kind = "no answer"
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
	if f.target == "postgres" {
		return 20 * time.Second
	}
	return 5 * time.Second
}

// schedule returns the faults of a storm. It is a function of its arguments alone. One or two faults at a time last up
// to four seconds, and then there is time to recover.
func schedule(seed uint64, long time.Duration) (faults []fault) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	ms := func(from, to int) time.Duration { return time.Duration(from+rnd.IntN(to-from)) * time.Millisecond }
	// Each kind comes before any comes again.
	var bag []kind
	draw := func() kind {
		if len(bag) == 0 {
			bag = []kind{kill, kill, suspend, suspend, restart, cutBefore, cutDuring, cutDuring, cutAfter, cutAfter, commitBefore,
				commitAfter, commitSilence, slow, blackHole, blackHole, answer503, answer429, badCatalog}
			rnd.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		k := bag[0]
		bag = bag[1:]
		return k
	}
	for at := ms(1000, 2000); ; {
		last := at
		var slot []fault
		for n := 1 + rnd.IntN(2); n > 0; n-- {
			f := fault{begin: at + ms(0, 500), kind: draw(), hint: rnd.IntN(3)}
			f.end = f.begin + ms(500, 4000)
			f.target, f.after, f.delay = target(f.kind, rnd), 1<<(4+rnd.IntN(14)), ms(20, 400)
			if f.kind == restart {
				f.end = f.begin + ms(200, 1500)
			}
			if slices.ContainsFunc(slot, func(g fault) bool { return g.target == f.target }) {
				continue // one rule at a time for each link
			}
			slot, last = append(slot, f), max(last, f.end)
		}
		pause := 6 * time.Second
		if slices.ContainsFunc(slot, func(f fault) bool { return f.target == "postgres" }) {
			pause = 9 * time.Second
		}
		if last+pause > long {
			return faults
		}
		faults, at = append(faults, slot...), last+pause
	}
}

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
	}
	return one(links)
}
