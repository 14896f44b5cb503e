package retrydebug

import (
	"fmt"
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

// list is runs that are kept. Of is how many there were, Over the time in which they were counted, and First says which
// are shown if not all are.
type list struct {
	Title, First, Over string
	Of                 int
	Runs               []*Run
}

func lists(s Snapshot) []list {
	unsuccessful, late := 0, 0
	for i := range s.Policies {
		unsuccessful += s.Policies[i].Total.GaveUp + s.Policies[i].Total.Canceled
		late += s.Policies[i].Hour.Recovered
	}
	return []list{
		{"Runs that did not succeed", "newest", "in all", unsuccessful, pointers(s.Failed)},
		{"Runs that succeeded after retries", "slowest", "in the last hour", late, pointers(s.Slowest)},
	}
}

// shownOf returns how many of the runs are shown, such as "newest 10 of 100 kept, 4289 in all".
func shownOf(l list, shown int) string {
	kept := len(l.Runs)
	switch {
	case l.Of == 0:
		return "none"
	case shown < kept:
		return fmt.Sprintf("%s %d of %d kept, %d %s", l.First, shown, kept, l.Of, l.Over)
	default:
		return fmt.Sprintf("%d kept, %s first, %d %s", kept, l.First, l.Of, l.Over)
	}
}

// pointers returns pointers to the elements of list. The templates copy all else that they pass on.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// summary returns one line, such as "1 of 3 policies failing, 2 calm; runs waiting: 3; 2026-11-28 23:10:00 UTC, counting
// for 3h20m0s".
func summary(s Snapshot) string {
	count, runs, jobs := map[string]int{}, 0, ""
	for _, p := range s.Policies {
		count[p.State]++
		runs += p.Waiting
		if p.Jobs {
			jobs = " (jobs: see their page)"
		}
	}
	text := fmt.Sprintf("%d of %d policies %s", count[failing], len(s.Policies), failing)
	for _, state := range []string{failed, someFail, retrying, calm} {
		if count[state] > 0 {
			text += fmt.Sprintf(", %d %s", count[state], state)
		}
	}
	return fmt.Sprintf("%s; runs %s: %d%s; %s UTC, counting for %s", text, waiting, runs, jobs,
		s.Taken.UTC().Format(time.DateTime), s.Taken.Sub(s.Since).Round(time.Second))
}

// headline returns what to know of a policy first, behind its state.
func headline(now time.Time, p *Policy) string {
	var parts []string
	switch p.State {
	case failing, someFail:
		parts = append(parts, "since "+clock(now, p.Trouble.Since)+" ("+age(now, p.Trouble.Since)+")")
		if now.Sub(p.Trouble.Until) > settled {
			parts = append(parts, "last "+ago(now, p.Trouble.Until))
		}
	case failed:
		parts = append(parts, span(now, p.Trouble))
	}
	if p.Hour.InDoubt > 0 {
		parts = append(parts, fmt.Sprintf("%d %s in an hour", p.Hour.InDoubt, inDoubt))
	}
	if p.BudgetEmpty {
		parts = append(parts, budgetEmpty)
	}
	if p.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", p.Waiting, waiting))
	}
	return strings.Join(parts, ", ")
}

// span returns when runs gave up, such as "02:19:25 to 02:21:30 (47s ago)".
func span(now time.Time, t *Trouble) string {
	text := clock(now, t.Since)
	if until := clock(now, t.Until); until != text {
		text += " to " + until
	}
	return text + " (" + ago(now, t.Until) + ")"
}

// clock returns the time of day of at, with the date if that is not today's.
func clock(now, at time.Time) string {
	now, at = now.UTC(), at.UTC()
	if now.Format(time.DateOnly) == at.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// details returns the other details of a policy, one in each line, the most urgent first.
func details(now time.Time, p *Policy) (lines []string) {
	add := func(known bool, format string, args ...any) {
		if known {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	over := p.State == calm || p.State == retrying
	if over && p.Trouble != nil {
		add(true, "gave up %s", span(now, p.Trouble))
	}
	if !over {
		do := whatToDo(&p.Minute)
		add(do != "", "what to do: %s", do)
	}
	add(p.Total.InDoubt > 0, "%s in a minute: %d; in an hour: %d; in all: %d", inDoubt, p.Minute.InDoubt, p.Hour.InDoubt, p.Total.InDoubt)
	add(p.Total.GaveUp > 0, "gave up in a minute: %s; in an hour: %s; in all: %s", reasonsText(&p.Minute), reasonsText(&p.Hour), reasonsText(&p.Total))
	if f := p.Last; f != nil {
		where := ""
		if f.Target != "" {
			where = ", " + f.Target
		}
		add(true, "last failure %s%s, attempt %s", ago(now, f.At), where, attemptText(f.Attempt))
	}
	add(p.Schedule != "", "%s", p.Schedule)
	add(p.Budget != "" && p.Budget != p.Name, "budget: %s", p.Budget)
	if h := p.Hour.Hedges; h != nil {
		add(true, "hedged in an hour: %s of %d calls, %d won, %d refused", percent(h.Hedged, h.Calls), h.Calls, h.Won, h.Refused)
	}
	add(p.Jobs, "jobs that wait are on the page of jobs, not here")
	return lines
}

// uses returns the policies of a budget with a name of its own, such as "of charges, prices".
func uses(b Budget) string {
	policies := strings.Join(b.Policies, ", ")
	if policies == "" || b.Name == bounded(policies, maxName) {
		return ""
	}
	return "of " + policies
}

// refusals returns how many retries a budget refused. Those of a minute and of an hour are known of its policies.
func refusals(b Budget) cell {
	c := cell{"refused", "-", "-", fmt.Sprint(b.Refused)}
	if len(b.Policies) > 0 {
		c.Minute, c.Hour = fmt.Sprint(b.RefusedMinute), fmt.Sprint(b.RefusedHour)
	}
	return c
}

// reasonsText returns the reasons for which runs gave up, such as "attempts_exhausted 2, ttl_elapsed 1".
func reasonsText(f *Figures) string {
	if f.GaveUp == 0 {
		return "none"
	}
	var texts []string
	for _, reason := range mostFrequent(f.Reasons) {
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

func age(now, at time.Time) string { return max(now.Sub(at), 0).Round(time.Second).String() }

func ago(now, at time.Time) string { return age(now, at) + " ago" }

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

// ending returns "dead_letter (attempts_exhausted) after 3 attempts in 1.2s", with ", in doubt," behind the reason of a
// run whose work may have been done.
func ending(r *Run) string {
	reason, attempts := "", "attempts"
	if r.Reason != "" {
		reason = " (" + r.Reason + ")"
	}
	if r.InDoubt {
		reason += ", " + inDoubt + ","
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
	add(r.EndedByGate, "ended by the gate")
	add(r.InnerGaveUp, "a layer below gave up")
	add(r.Deadline > 0, "deadline "+short(r.Deadline))
	add(r.TTL > 0, "TTL "+short(r.TTL))
	add(r.Error != "", r.Error)
	return text
}
