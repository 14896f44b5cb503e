//go:build unix

package killtest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// audit compares the jobs in the database with the effects of their attempts.
type audit struct {
	infos   []retryjob.Info
	effects map[string][]effect // by attempt
	found   map[string]bool     // the attempts that are in a record
}

func newAudit(infos []retryjob.Info, effects []effect) *audit {
	a := &audit{infos, map[string][]effect{}, map[string]bool{}}
	lives := map[string]int{}
	for i := range infos {
		lives[infos[i].JobID] = infos[i].Replays
	}
	for _, e := range effects {
		if e.Life == lives[e.Job] { // the record has the attempts since the last replay
			a.effects[e.ID] = append(a.effects[e.ID], e)
		}
	}
	return a
}

// missing returns the enqueued jobs that are not in the database exactly once, and the jobs in the database that were
// not enqueued.
func (a *audit) missing(jobs map[string]string) []string {
	times := map[string]int{}
	for _, info := range a.infos {
		times[info.JobID]++
	}
	var wrong []string
	for id := range jobs {
		if times[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d times", id, times[id]))
		}
		delete(times, id)
	}
	for id := range times {
		wrong = append(wrong, id+": never enqueued")
	}
	return wrong
}

// faults returns every contradiction within a record, with the job's behavior, and with the effects of its attempts.
// jobs are the kinds of the jobs by ID.
func (a *audit) faults(jobs map[string]string) (faults []string) {
	for i := range a.infos {
		info := &a.infos[i]
		wrong := slices.Concat(a.endFaults(info, jobs[info.JobID]), a.runFaults(info), a.effectFaults(info))
		if len(wrong) > 0 {
			faults = append(faults, fmt.Sprintf("%s: %s: %+v", info.JobID, strings.Join(wrong, "; "), info.Record))
		}
	}
	for id, effects := range a.effects {
		if !a.found[id] {
			faults = append(faults, fmt.Sprintf("no record tells of attempt %s, which left %v", id, effects))
		}
	}
	return faults
}

// endFaults checks how the job has ended.
func (a *audit) endFaults(info *retryjob.Info, kind string) (wrong []string) {
	b, last := behaviors[kind], info.Last()
	if err := info.Validate(); err != nil {
		wrong = append(wrong, err.Error())
	}
	if !info.Status.Final() || info.Kind != kind {
		wrong = append(wrong, "it is not final, or of another kind")
	}
	ended := ending{info.Status, info.Reason}
	unlucky := lost(last) && ended == ending{retryjob.DeadLettered, retry.AttemptsExhausted} && info.Attempts == b.policy.MaxAttempts
	if ended != (ending{b.status, b.reason}) && !unlucky {
		wrong = append(wrong, fmt.Sprintf("it ended as %v", ended))
	}
	switch {
	case last.Status.Final() && ended != (ending{last.Status, last.Reason}):
		wrong = append(wrong, "its last attempt ended otherwise")
	case !last.Status.Final() && ended != (ending{retryjob.Expired, retry.TTLElapsed}): // before the attempt was due
		wrong = append(wrong, "its last attempt has not ended it")
	}
	if b.policy.MaxAttempts > 0 && info.Attempts > b.policy.MaxAttempts || b.policy.Disabled && info.Attempts > 1 {
		wrong = append(wrong, "it has more attempts than its policy allows")
	}
	if info.Attempts != last.Number || !last.Late && info.Ended.Before(last.End) {
		wrong = append(wrong, "its last attempt is not the last")
	}
	return wrong
}

type ending struct {
	status retryjob.Status
	reason retry.Reason
}

// lost reports whether the attempt was lost with its worker, or treated as lost.
func lost(attempt retryjob.Attempt) bool {
	return attempt.Late || attempt.Err == retryjob.ErrLost.Error()
}

// runFaults checks the history alone.
func (a *audit) runFaults(info *retryjob.Info) (wrong []string) {
	var now time.Time // the time that the history has reached
	for i, attempt := range info.History {
		if a.found[attempt.ID] || attempt.ID != info.AttemptID(attempt.Number) {
			wrong = append(wrong, fmt.Sprintf("attempt %q is not its own", attempt.ID))
		}
		a.found[attempt.ID] = true
		if attempt.Number != i+1 {
			wrong = append(wrong, fmt.Sprintf("entry %d is attempt %d", i+1, attempt.Number))
		}
		if i < len(info.History)-1 && attempt.Status != retryjob.WaitingRetry {
			wrong = append(wrong, fmt.Sprintf("attempt %d ended it, and was not the last", attempt.Number))
		}
		switch {
		case lost(attempt) && attempt.End.IsZero() == attempt.Late:
			wrong = append(wrong, fmt.Sprintf("attempt %d was lost, and has an end, or is late and has none", attempt.Number))
		case lost(attempt) && attempt.Start.IsZero():
			continue
		case attempt.Start.Before(now):
			wrong = append(wrong, fmt.Sprintf("attempt %d started before it was due, or the one before it had ended", attempt.Number))
		case !lost(attempt) && (attempt.End.IsZero() || attempt.End.Before(attempt.Start)):
			wrong = append(wrong, fmt.Sprintf("attempt %d ended before it started", attempt.Number))
		}
		if i+1 < len(info.History) && lost(attempt) && lost(info.History[i+1]) {
			// The attempt after both may have recorded both losses, and a due time for each. If this one returned late, it can
			// even have started after that.
			if !attempt.Late {
				now = attempt.Start
			}
			continue
		}
		now = attempt.Start
		if !lost(attempt) {
			now = attempt.End
		}
		// A late one can start after it was given up, if its process was suspended between its lease and its start.
		if due := attempt.Due.Truncate(time.Millisecond); due.After(now) || attempt.Late { // the precision of SQLite
			now = due
		}
	}
	return wrong
}

// effectFaults compares the history with the effects.
func (a *audit) effectFaults(info *retryjob.Info) (wrong []string) {
	for _, attempt := range info.History {
		effects := a.effects[attempt.ID]
		if len(effects) == 0 && lost(attempt) {
			continue
		}
		if len(effects) != 1 || effects[0].Job != info.JobID || effects[0].Number != attempt.Number {
			wrong = append(wrong, fmt.Sprintf("attempt %d left %v", attempt.Number, effects))
			continue
		}
		text := "" // of its result
		if err := errOf[effects[0].Did]; err != nil {
			text = err.Error()
		}
		if (!lost(attempt) || attempt.Late) && attempt.Err != text || !lost(attempt) && ((attempt.Status == retryjob.Succeeded) != (effects[0].Did == done)) {
			wrong = append(wrong, fmt.Sprintf("attempt %d left %v", attempt.Number, effects))
		}
	}
	return wrong
}

// report counts and explains the differences from a run without kills.
func (a *audit) report() string {
	var all, silent, unrecorded, late, twice, spare, inVain int
	endings := map[string]int{}
	for i := range a.infos {
		info := &a.infos[i]
		endings[strings.TrimSpace(info.Status.String()+" "+info.Reason.Error())]++
		all += len(info.History)
		successes := 0
		for _, attempt := range info.History {
			effects := a.effects[attempt.ID]
			if len(effects) > 0 && effects[0].Did == done {
				successes++
			}
			switch {
			case attempt.Late:
				late++
			case lost(attempt) && len(effects) == 0:
				silent++
			case lost(attempt):
				unrecorded++
			}
		}
		if successes > 1 {
			twice++
			spare += successes - 1
		}
		if successes > 0 && info.Status != retryjob.Succeeded {
			inVain++
		}
	}
	var b strings.Builder
	for _, ending := range slices.Sorted(maps.Keys(endings)) {
		fmt.Fprintf(&b, "  %4d %s\n", endings[ending], ending)
	}
	fmt.Fprintf(&b, "%d attempts, of which %d were lost with their workers:\n", all, silent+unrecorded+late)
	fmt.Fprintf(&b, "  %d were killed before their effect: each was made again, unless it was the last that the policy allows\n", silent)
	fmt.Fprintf(&b, "  %d were killed after it: the completion had not reached the database\n", unrecorded)
	fmt.Fprintf(&b, "  %d were suspended for so long that they were given up, and are marked as late\n", late)
	fmt.Fprintf(&b, "duplicates: %d jobs succeeded more than once, %d times in excess: the completion of a success was lost each time\n", twice, spare)
	fmt.Fprintf(&b, "in vain: %d jobs succeeded and are exhausted: that completion was lost too, and no attempt was left", inVain)
	return b.String()
}
