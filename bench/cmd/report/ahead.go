package main

import (
	"fmt"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/retrygo/retry/bench/internal/contest"
)

// ahead returns where a peer beats ours: each of ours, by time or what else the scenario measures, on each number of
// cores, and by allocations. The limits are no peers.
func ahead(results []contest.Result) string {
	var bullets []string
	for _, r := range results {
		for i, ours := range r.Scenario.Contenders {
			if ours.Form != contest.Ours {
				continue
			}
			for k := range r.Cores {
				bullets = appendBullet(bullets, metric(r, k), ours, asMedian(r, i, k), fasterPeers(r, i, k))
			}
			if ours.New != nil {
				bullets = appendBullet(bullets, r.Scenario.Name+", allocations", ours, asAllocs(r, i), thriftierPeers(r, i))
			}
		}
	}
	text := "## Where a peer is ahead\n\n"
	if len(bullets) == 0 {
		return text + "Nowhere: no peer's median is below ours, nor does one allocate less often.\n"
	}
	return text + strings.Join(bullets, "\n") + "\n"
}

func appendBullet(bullets []string, what string, ours contest.Contender, numbers string, peers []string) []string {
	if len(peers) == 0 {
		return bullets
	}
	return append(bullets, fmt.Sprintf("- **%s**: %s %s; ahead: %s.", what, ours.Name, numbers, strings.Join(peers, "; ")))
}

// metric names what the medians on the kth number of cores are of.
func metric(r contest.Result, k int) string {
	what := "time"
	if r.Scenario.Unit != "ns/op" {
		what = r.Scenario.Unit
	}
	if len(r.Scenario.Cores) > 1 {
		what += " on " + countCores(r.Cores[k])
	}
	return r.Scenario.Name + ", " + what
}

func fasterPeers(r contest.Result, ours, k int) []string {
	our := r.Rows[ours].Medians[k]
	var faster []string
	for i, c := range r.Scenario.Contenders {
		their := r.Rows[i].Medians[k]
		if !isPeer(c) || !(their.Center < our.Center) {
			continue
		}
		text := fmt.Sprintf("%s (%s) %s", c.Name, c.Form, asMedian(r, i, k))
		if overlap(our, their) {
			text += ", within the noise: the confidence intervals overlap"
		}
		faster = append(faster, text)
	}
	return faster
}

func thriftierPeers(r contest.Result, ours int) []string {
	var thriftier []string
	for i, c := range r.Scenario.Contenders {
		if isPeer(c) && c.New != nil && r.Rows[i].Allocs < r.Rows[ours].Allocs {
			thriftier = append(thriftier, fmt.Sprintf("%s (%s) %s", c.Name, c.Form, asAllocs(r, i)))
		}
	}
	return thriftier
}

func isPeer(c contest.Contender) bool { return c.Form == contest.Fastest || c.Form == contest.Usual }

func overlap(a, b benchmath.Summary) bool { return a.Lo <= b.Hi && b.Lo <= a.Hi }

func asMedian(r contest.Result, i, k int) string {
	median := r.Rows[i].Medians[k]
	return fmt.Sprintf("%s %s %s", significant(median.Center, 3), r.Scenario.Unit, spread(median))
}

func asAllocs(r contest.Result, i int) string { return count(r.Rows[i].Allocs) + " allocs/op" }
