package retrydebug

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// cell is a figure of a policy of the last minute, of the last hour, and of all time.
type cell struct{ Head, Minute, Hour, Total string }

// cells returns the figures of a policy. The cells of the zero Policy have the heads of their columns.
func cells(p *Policy) []cell {
	of := func(head string, text func(*Figures) string) cell {
		return cell{head, text(&p.Minute), text(&p.Hour), text(&p.Total)}
	}
	return []cell{
		of("runs a minute", func(f *Figures) string {
			return fmt.Sprintf("%.1f", float64(f.Runs)*float64(time.Minute)/float64(max(f.Over, time.Second)))
		}),
		of("first try", func(f *Figures) string { return percent(f.FirstTry, f.Runs) }),
		of("retries per run", func(f *Figures) string { return percent(f.Retries, f.Runs) }),
		of("gave up", func(f *Figures) string { return fmt.Sprint(f.GaveUp) }),
	}
}

type list struct {
	Title string
	Runs  []*Run
}

func lists(s Snapshot) []list {
	return []list{{"Runs that did not succeed", pointers(s.Failed)}, {"The slowest that succeeded after retries", pointers(s.Slowest)}}
}

// pointers returns pointers to the elements of list. The templates copy all else that they pass on.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// summary returns one line, such as "1 of 3 policies failing, 1 retrying; 2026-11-28 23:10:00 UTC, counting for
// 3h20m0s".
func summary(s Snapshot) string {
	count := map[string]int{}
	for _, p := range s.Policies {
		count[p.State]++
	}
	return fmt.Sprintf("%d of %d policies failing, %d retrying; %s UTC, counting for %s", count[failing], len(s.Policies), count[retrying],
		s.Taken.UTC().Format(time.DateTime), s.Taken.Sub(s.Since).Round(time.Second))
}

// details returns the other details of a policy, one in each line.
func details(now time.Time, p *Policy) (lines []string) {
	if p.Schedule != "" {
		lines = append(lines, p.Schedule)
	}
	if f := p.Last; f != nil {
		where := ""
		if f.Target != "" {
			where = ", " + f.Target
		}
		lines = append(lines, "last failure "+ago(now, f.At)+where+", attempt "+attemptText(f.Attempt))
	}
	if p.Total.GaveUp > 0 {
		lines = append(lines, fmt.Sprintf("gave up in a minute: %s; in an hour: %s; in all: %s",
			reasonsText(&p.Minute), reasonsText(&p.Hour), reasonsText(&p.Total)))
	}
	if h := p.Hour.Hedges; h != nil {
		lines = append(lines, fmt.Sprintf("hedged in an hour: %s of %d calls, %d won, %d refused", percent(h.Hedged, h.Calls), h.Calls, h.Won, h.Refused))
	}
	return lines
}

// reasonsText returns the reasons for which runs gave up, such as "attempts_exhausted 2, ttl_elapsed 1".
func reasonsText(f *Figures) string {
	if f.GaveUp == 0 {
		return "none"
	}
	var texts []string
	for _, reason := range slices.SortedFunc(maps.Keys(f.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Reasons[b], f.Reasons[a]), cmp.Compare(a, b))
	}) {
		texts = append(texts, fmt.Sprintf("%s %d", reason, f.Reasons[reason]))
	}
	return strings.Join(texts, ", ")
}

// short returns d to three digits or so.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, 10 * time.Millisecond, time.Millisecond, 10 * time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

func ago(now, at time.Time) string { return max(now.Sub(at), 0).Round(time.Second).String() + " ago" }

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// attemptText returns a text such as "2 retryable after 50ms: connection refused; wait 100ms".
func attemptText(a Attempt) string {
	text := fmt.Sprintf("%d %s after %s", a.Number, a.Ended, short(a.Duration))
	if a.Error != "" {
		text += ": " + a.Error
	}
	if a.Hint > 0 {
		text += "; asked to wait " + short(a.Hint)
	}
	if a.Wait > 0 {
		text += "; wait " + short(a.Wait)
	}
	return text
}

// ending returns "dead_letter (attempts_exhausted) after 3 attempts in 1.2s".
func ending(r *Run) string {
	reason, attempts := "", "attempts"
	if r.Reason != "" {
		reason = " (" + r.Reason + ")"
	}
	if r.Attempts == 1 {
		attempts = "attempt"
	}
	return fmt.Sprintf("%s%s after %d %s in %s", r.Status, reason, r.Attempts, attempts, short(r.Elapsed))
}

// facts returns the other facts about a run, divided by commas.
func facts(now time.Time, r *Run) string {
	text := ago(now, r.Ended)
	add := func(known bool, fact string) {
		if known {
			text += ", " + fact
		}
	}
	add(r.Target != "", r.Target)
	add(r.Job != "", "job "+r.Job)
	add(r.Label != "", r.Label)
	add(r.InDoubt, "in doubt")
	add(r.EndedByGate, "ended by the gate")
	add(r.InnerGaveUp, "a layer below gave up")
	add(r.Deadline > 0, "deadline "+short(r.Deadline))
	add(r.TTL > 0, "TTL "+short(r.TTL))
	add(r.Error != "", r.Error)
	return text
}
