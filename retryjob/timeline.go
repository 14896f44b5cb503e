package retryjob

import "time"

// Line is a line of a Timeline: an attempt, or several in a row that the record does not hold.
type Line struct {
	// Attempt is the attempt. For those that the record does not hold it has the Number of the first and an Err that
	// says why, or the Status Leased for the one that has just begun.
	Attempt
	Last int // the number of the last attempt of the line
	// Took is how long the attempt took: until now if it is under way, until the next one started if it was lost.
	// Negative means not known.
	Took time.Duration
	Wait time.Duration // from its end to Due; negative if none was decided on then
	Note string        // on Took: ", late", " so far", "lost" or empty
}

// Lasted returns Took with its Note, as text makes one of the time: "1s", "1s, late", "1s so far", "lost, 1s".
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

// Timeline returns the attempts since First as they are to be read at now, with a line for each gap in History.
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
