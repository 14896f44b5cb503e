package retryjob

import "time"

// Line is a line of a Timeline: one attempt, or several consecutive ones that the record does not have.
type Line struct {
	// Attempt is the attempt. For attempts that the record does not have, it has the Number of the first one and an Err
	// that says why or, for an attempt that has just begun, the Status Leased.
	Attempt
	Last int // the number of the last attempt of the line
	// Took is the duration of the attempt: until now if it is under way, and until the start of the next attempt if it
	// was lost. Negative means unknown.
	Took time.Duration
	Wait time.Duration // from its end to Due; negative if unknown or if no attempt follows
	Note string        // about Took: ", late", " so far", "lost" or empty
}

// Lasted returns Took, formatted by text, with its Note: "1s", "1s, late", "1s so far", "lost, 1s". If Took is unknown,
// it returns the Note.
func (l *Line) Lasted(text func(time.Duration) string) string {
	switch {
	case l.Took < 0:
		return l.Note
	case l.Note == "lost":
		return "lost, " + text(l.Took)
	default:
		return text(l.Took) + l.Note
	}
}

// Timeline returns the attempts since First as of now, with a line for each gap in History.
func (r *Record) Timeline(now time.Time) []Line {
	var lines []Line
	next := 1
	gap := func(last int) {
		if next > last {
			return
		}
		missing := Line{Attempt: Attempt{Number: next, Err: "not in the record: the worker was lost"}, Last: last, Took: -1, Wait: -1}
		if len(r.History) >= keptAttempts && last < r.Attempts {
			missing.Err = "no longer in the record"
		}
		lines = append(lines, missing)
	}
	for i, a := range r.History {
		gap(a.Number - 1)
		next = a.Number + 1
		l := Line{Attempt: a, Last: a.Number, Took: -1, Wait: -1}
		switch {
		case a.Late:
			l.Took, l.Note = max(a.End.Sub(a.Start), 0), ", late" // its wait was before its end
		case !a.End.IsZero():
			l.Took = max(a.End.Sub(a.Start), 0)
			if !a.Due.IsZero() {
				l.Wait = max(a.Due.Sub(a.End), 0)
			}
		case r.Status == Leased && a.Number == r.Attempts && !a.Start.IsZero():
			l.Took, l.Note = max(now.Sub(a.Start), 0), " so far"
		default:
			l.Note = "lost"
			if i+1 < len(r.History) && r.History[i+1].Number == next && !a.Start.IsZero() {
				l.Took = r.History[i+1].Start.Sub(a.Start)
			}
		}
		lines = append(lines, l)
	}
	if r.Status == Leased && next <= r.Attempts {
		gap(r.Attempts - 1)
		return append(lines, Line{Attempt: Attempt{Number: r.Attempts, Status: Leased}, Last: r.Attempts, Took: -1, Wait: -1})
	}
	gap(r.Attempts)
	return lines
}
