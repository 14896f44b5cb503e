package retrydebug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

const (
	maxFailed   = 100 // runs that did not succeed
	maxSlow     = 20  // runs that succeeded after retries
	slowFor     = time.Hour
	maxAttempts = 8       // of a run, the first and the newest
	maxRead     = 4 << 10 // bytes of an error that Redact gets
	maxText     = 180     // bytes of an error or a schedule that are kept
)

// runs are the runs that are kept. A Run in it does not change.
type runs struct {
	mu     sync.Mutex
	failed []*Run // in the order in which they ended
	slow   []*Run
}

// addFailed adds a run. Without room it drops the oldest run of the largest group with the same policy and reason.
func (k *runs) addFailed(r *Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.failed) == maxFailed {
		type alike struct{ policy, reason string }
		count, most := map[alike]int{}, 0
		for _, old := range k.failed {
			a := alike{old.Policy, old.Reason}
			count[a]++
			most = max(most, count[a])
		}
		drop := slices.IndexFunc(k.failed, func(old *Run) bool { return count[alike{old.Policy, old.Reason}] == most })
		k.failed = slices.Delete(k.failed, drop, drop+1)
	}
	k.failed = append(k.failed, r)
}

// slowPlace returns the index in k.slow at which a run belongs. It is the end, or the place of a run that ended more
// than an hour ago or of the fastest. It is -1 if the run does not belong there.
func (k *runs) slowPlace(ended time.Time, elapsed time.Duration) int {
	if len(k.slow) < maxSlow {
		return len(k.slow)
	}
	fastest := 0
	for i, old := range k.slow {
		if ended.Sub(old.Ended) > slowFor {
			return i
		}
		if old.Elapsed < k.slow[fastest].Elapsed {
			fastest = i
		}
	}
	if k.slow[fastest].Elapsed < elapsed {
		return fastest
	}
	return -1
}

// isSlow reports whether a run belongs to the slowest.
func (k *runs) isSlow(ended time.Time, elapsed time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.slowPlace(ended, elapsed) >= 0
}

// addSlow adds a run if it still belongs to the slowest.
func (k *runs) addSlow(r *Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch i := k.slowPlace(r.Ended, r.Elapsed); {
	case i == len(k.slow):
		k.slow = append(k.slow, r)
	case i >= 0:
		k.slow[i] = r
	}
}

// copied returns the failed runs, the newest first, and the slow ones of the last hour, the slowest first.
func (k *runs) copied(now time.Time) (failed, slow []Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	failed, slow = make([]Run, 0, len(k.failed)), make([]Run, 0, len(k.slow))
	for _, r := range slices.Backward(k.failed) {
		failed = append(failed, *r)
	}
	for _, r := range k.slow {
		if now.Sub(r.Ended) <= slowFor {
			slow = append(slow, *r)
		}
	}
	slices.SortFunc(slow, func(a, b Run) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	return failed, slow
}

// failure returns the newest failed attempt of a policy in the form in which it is shown.
func (p *Page) failure(now time.Duration, e *retry.Event) *Failure {
	return &Failure{At: p.began.Add(now), Attempt: p.attempt(&e.Attempt, 0), Target: target(e.Attempt.Err)}
}

// run returns the record of a run that has ended.
func (p *Page) run(ctx context.Context, policy string, ended time.Time, e *retry.Event) *Run {
	o := e.Outcome
	r := &Run{
		Policy: policy, Status: o.Status.String(), Reason: o.Reason.Error(), Ended: ended, Elapsed: max(o.Elapsed, 0),
		Attempts: o.Attempts, EndedByGate: o.EndedByGate, InnerGaveUp: o.InnerGaveUp, InDoubt: retry.IsAmbiguous(e.Err), Job: jobKind(ctx),
	}
	began := ended.Add(-r.Elapsed)
	if ctx != nil {
		if deadline, ok := ctx.Deadline(); ok {
			r.Deadline = deadline.Sub(began)
		}
		if p.options.Label != nil {
			r.Label = bounded(p.options.Label(ctx), maxName)
		}
	}
	failed := o.History
	if len(failed) > maxAttempts {
		failed = append(slices.Clone(failed[:1]), failed[len(failed)-maxAttempts+1:]...)
	}
	var end time.Duration // of the last wait
	for i := range failed {
		start := min(max(failed[i].Start.Sub(began), 0), r.Elapsed)
		a := p.attempt(&failed[i], start)
		r.History = append(r.History, a)
		r.Target = cmp.Or(target(failed[i].Err), r.Target)
		end = min(a.Start+a.Duration+a.Wait, r.Elapsed)
	}
	if o.Status == retry.Succeeded {
		r.History = append(r.History, Attempt{Number: o.Attempts, Start: end, Duration: r.Elapsed - end, Ended: o.Status.String()})
	}
	var run *retry.Error
	if len(failed) == 0 && errors.As(e.Err, &run) && run.Cause() != nil {
		r.Error = p.text(run.Cause())
	}
	return r
}

func (p *Page) attempt(a *retry.Attempt, start time.Duration) Attempt {
	ended := a.Class.String()
	if errors.Is(a.Err, retry.ErrAttemptTimeout) {
		ended = "timeout"
	}
	_, hint := retry.Policy{}.Judge(a.Err)
	return Attempt{Number: a.Number, Start: start, Duration: max(a.Duration, 0), Ended: ended, Wait: a.Delay, Hint: hint, Error: p.text(a.Err)}
}

// target returns the method and the host of the request in err, or the method of a call of gRPC, or "" if err is of
// neither. The rest of the request, such as its path, often has the key of a customer.
func target(err error) string {
	var request slog.LogValuer
	if !errors.As(err, &request) {
		return ""
	}
	return textsOf(request, "method", "host")
}

// isJob reports whether ctx is the context of the run of a job.
func isJob(ctx context.Context) bool { return ctx != nil && ctx.Value(retryshell.ReportedJob{}) != nil }

// jobKind returns the kind of the job that ctx belongs to, or "" if it does not belong to a job.
func jobKind(ctx context.Context) string {
	if !isJob(ctx) {
		return ""
	}
	job, _ := ctx.Value(retryshell.ReportedJob{}).(slog.LogValuer)
	return textsOf(job, "kind")
}

// textsOf returns the texts with the given keys of a group, divided by blanks.
func textsOf(v slog.LogValuer, keys ...string) string {
	value := slog.AnyValue(v).Resolve()
	if value.Kind() != slog.KindGroup {
		return ""
	}
	var texts []string
	for _, a := range value.Group() {
		if text := a.Value.Resolve(); slices.Contains(keys, a.Key) && text.Kind() == slog.KindString {
			texts = append(texts, text.String())
		}
	}
	return bounded(strings.Join(texts, " "), maxName)
}

// text returns the text of err as it is shown. The whole is cut before Redact reads it at a space, so that no half of a
// secret is left.
func (p *Page) text(err error) string {
	if err == nil || p.options.HideErrors {
		return ""
	}
	whole := fmt.Sprint(err) // survives a panic of Error
	if len(whole) > maxRead {
		whole = whole[:strings.LastIndexAny(whole[:maxRead], " \t\r\n")+1] + "..."
	}
	return bounded(p.options.Redact(whole), maxText)
}

// bounded returns at most limit bytes of text on one line, as a copy. A line break becomes "; ". Characters that a
// terminal would interpret, or that reorder the text around them, and bytes that are not UTF-8 become U+FFFD.
func bounded(text string, limit int) string {
	cut := text[:min(len(text), 2*limit)]
	lines := strings.FieldsFunc(cut, func(r rune) bool { return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029' })
	clean := strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.In(r, unicode.Cc, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(lines, "; "))
	if len(clean) <= limit && len(cut) == len(text) {
		return strings.Clone(clean)
	}
	const dots = "..."
	clean = clean[:min(len(clean), limit-len(dots))]
	return strings.ToValidUTF8(clean, "") + dots // not half of a character
}
