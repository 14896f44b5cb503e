package retryplan

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Level says how much a Finding matters.
type Level uint8

// The levels.
const (
	Note    Level = iota + 1 // worth knowing
	Warning                  // likely to hurt
	Severe                   // does not do what it says, or can take a backend down
)

// String returns "note", "warning" or "severe", "" for the zero Level, and "Level(4)" for one that does not exist.
func (l Level) String() string { return named(uint8(l), "Level", "", "note", "warning", "severe") }

// oneMore returns the level after l if it is so.
func oneMore(l Level, so bool) Level {
	if so {
		return l + 1
	}
	return l
}

// Finding is one thing about a policy that its author should know.
type Finding struct {
	// Code is stable and made for filters: "no-jitter".
	Code  string
	Level Level
	// Text says what was found, in one sentence with the figures behind it.
	Text string
	// Change says what to do about it, in one sentence that begins with "Set", a field of retry.Policy, or of Setting,
	// and a value: the finding is gone once that is done, though another can come in its place.
	Change string
	// Figures are the numbers in Text for machines, all finite: durations in seconds. Keys are snake_case. Nil means
	// none.
	Figures map[string]float64
}

// Setting describes the use of a policy: what Lint cannot see in the policy itself. With the zero Setting, Lint finds
// nothing that depends on it. A negative field counts as zero.
type Setting struct {
	// Inline says that a caller waits for the run, as a request handler does, rather than a queue. False means that
	// none is known to wait.
	Inline bool
	// Deadline is the caller's, counted from the start of the run. Zero means none.
	Deadline time.Duration
	// Layers is how many services on the way from the user to the backend retry with this policy, this one included.
	// Zero means 1.
	Layers int
	// Clients is how many clients use the policy against one backend. Zero means not known.
	Clients int
	// Duration is how long an attempt takes. Zero means not known.
	Duration Dist
}

// Lint returns the findings about p in the given setting, the gravest first and then by code, or nil if there are none.
// A policy that does not validate has one finding of code "invalid" for each bad field, and no others.
//
// It calls the policy's own Validate, Effective, Decide, Admit, Bounds and TotalWait, but none of the functions in its
// fields, and does not touch its Budget. It assumes that waits chosen by Policy.Wait are of any length up to Cap. Doing
// what the findings say, one after the other and in any order, ends: no change brings an earlier policy back. If a run
// can have more than 10,000 attempts, it assumes that those beyond can start.
//
//	code                         level            found if
//	cap-never-reached            note             the longest wait is a tenth of Cap or less
//	cap-stops-growth             note             an exponential or linear backoff is at its cap from the first wait on
//	decorrelated-without-cap     note             DecorrelatedJitter can grow to 243 times Base and more, and Cap is not set
//	hint-beyond-ttl              note             MaxHint is set above TTL or deadline: such hints are never waited for
//	inline-wait-too-long         warning, severe  a caller waits more than 10s, or than 60s, between attempts
//	invalid                      severe           Validate refuses the policy
//	list-longer-than-attempts    warning          Delays has waits for which there is no attempt
//	list-shorter-than-attempts   note             the last of Delays is used more than once
//	long-hint-inline             note, warning    a caller can be made to wait more than 10s, or than 60s, by a server's hint
//	many-attempts                note             there are more than 50 attempts
//	missing-unit                 severe           a duration is below 1µs, as a number without a unit is
//	narrow-jitter                note, warning    JitterRatio is below 0.5; a warning from 1,000 clients on
//	nested-amplification         note to severe   layers multiply each other's attempts: severe from 10 times on, a note with a budget
//	no-attempt-timeout           note, warning    an attempt that hangs is waited for without end; a warning inline
//	no-budget                    note, warning    nothing bounds the share of retries; a warning from 4 attempts on, inline or within a minute
//	no-jitter                    warning, severe  all clients return together; severe from 1,000 clients on, nothing for one
//	no-retry-can-start           note, severe     not even the second attempt can start before TTL or deadline; a note if only short waits allow it
//	timeout-below-duration       warning, severe  AttemptTimeout cuts off more than 5 %, or 50 %, of healthy attempts
//	timeout-eats-ttl             note, warning    if attempts hang, TTL or deadline leave room for fewer than otherwise; a warning for the first alone
//	unlimited-without-ttl        warning, severe  a run that keeps failing never ends; severe inline
//	unreachable-attempts         note, warning    TTL or deadline make attempts impossible, or unlikely: a note
//	unread-fields                note             fields are set that nothing reads, since Disabled or MaxAttempts 1 allow no retry
//	zero-delay                   note to severe   waits of a List are 0: a note for the first alone, severe for an endless loop
func Lint(p retry.Policy, s Setting) []Finding {
	if err := p.Validate(); err != nil {
		return invalid(err)
	}
	l := newLinter(p, s)
	var found []Finding
	for _, r := range lintRules() {
		if f := r.find(l); f.Level > 0 {
			f.Code = r.code
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Level, x.Level), cmp.Compare(x.Code, y.Code))
	})
	return found
}

// codeInvalid is the one code that stands for no rule of its own: the rules are those of Validate.
const codeInvalid = "invalid"

// Codes returns every code that Lint can give, sorted.
func Codes() []string {
	codes := []string{codeInvalid}
	for _, r := range lintRules() {
		codes = append(codes, r.code)
	}
	slices.Sort(codes)
	return codes
}

// lintRule finds one thing; a Finding of Level zero is none.
type lintRule struct {
	code string
	find func(*linter) Finding
}

func lintRules() []lintRule {
	return []lintRule{
		{"cap-never-reached", (*linter).capNeverReached},
		{"cap-stops-growth", (*linter).capStopsGrowth},
		{"decorrelated-without-cap", (*linter).decorrelatedWithoutCap},
		{"hint-beyond-ttl", (*linter).hintBeyondTTL},
		{"inline-wait-too-long", (*linter).inlineWaitTooLong},
		{"list-longer-than-attempts", (*linter).listLonger},
		{"list-shorter-than-attempts", (*linter).listShorter},
		{"long-hint-inline", (*linter).longHintInline},
		{"many-attempts", (*linter).manyAttempts},
		{"missing-unit", (*linter).missingUnit},
		{"narrow-jitter", (*linter).narrowJitter},
		{"nested-amplification", (*linter).nestedAmplification},
		{"no-attempt-timeout", (*linter).noAttemptTimeout},
		{"no-budget", (*linter).noBudget},
		{"no-jitter", (*linter).noJitter},
		{"no-retry-can-start", (*linter).noRetryCanStart},
		{"timeout-below-duration", (*linter).timeoutBelowDuration},
		{"timeout-eats-ttl", (*linter).timeoutEatsTTL},
		{"unlimited-without-ttl", (*linter).unlimitedWithoutTTL},
		{"unreachable-attempts", (*linter).unreachableAttempts},
		{"unread-fields", (*linter).unreadFields},
		{"zero-delay", (*linter).zeroDelay},
	}
}

// invalid returns a finding for each field that Validate named.
func invalid(err error) (found []Finding) {
	var all retry.FieldErrors
	errors.As(err, &all)
	for _, err := range all {
		var bad *retry.FieldError
		errors.As(err, &bad)
		field := strings.TrimPrefix(bad.Field, "Policy.")
		found = append(found, Finding{
			Code: codeInvalid, Level: Severe,
			Text:   field + " " + bad.Value + " " + bad.Rule + ", and Do refuses the policy.",
			Change: "Set " + zeroed(field) + ".",
		})
	}
	return found
}

// zeroed returns the text that takes away what a field has wrong: its zero value is always valid in itself.
func zeroed(field string) string {
	switch {
	case strings.HasPrefix(field, "Delays["):
		return field + " to 0s"
	case field == "Delays": // an empty list, although a Mode asks for one
		return "Mode to 0"
	default:
		return field + " to 0, which means the default"
	}
}
