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
	Severe                   // does not have its apparent effect, or can take a backend down
)

// String returns "note", "warning" or "severe", "" for the zero Level, and "Level(4)" for one that does not exist.
func (l Level) String() string { return named(uint8(l), "Level", "", "note", "warning", "severe") }

// oneMore returns the level after l if raise is set, and l otherwise.
func oneMore(l Level, raise bool) Level {
	if raise {
		return l + 1
	}
	return l
}

// Finding is one thing about a policy that its author should know.
type Finding struct {
	// Code is stable and made for filters: "no-jitter".
	Code  string
	Level Level
	// Text states the finding, in one sentence with the figures behind it.
	Text string
	// Change is the remedy, in one sentence that begins with "Set", a field of retry.Policy and a value. Making
	// the change removes the finding, though another can take its place. Lint knows the policy alone. Whether a fleet fares
	// better with the change is for Advise.
	Change string

	// changed is the policy with the first alternative of Change, or nil if the change does not matter to a simulation. If
	// funded is set, the change is a Budget.
	changed *retry.Policy
	funded  bool
}

// graver orders findings by level, the gravest first, and then by code.
func graver(x, y Finding) int {
	return cmp.Or(cmp.Compare(y.Level, x.Level), cmp.Compare(x.Code, y.Code))
}

// Setting describes the use of a policy, which Lint cannot see in the policy itself. With the zero Setting, Lint finds
// nothing that depends on it. A negative field counts as zero.
type Setting struct {
	// Inline says that a caller waits for the run, as a request handler does. False means a background job, or that the
	// use is not known.
	Inline bool
	// Deadline is the caller's, counted from the start of the run. Zero means none.
	Deadline time.Duration
	// Clients is the number of clients that use the policy against one backend. Zero means not known.
	Clients int
	// Duration is the time that an attempt takes in a calm, the time in a queue included. Zero means not known.
	Duration Dist
}

// Lint returns the findings about p in the given setting, the gravest first and then by code, or nil if there are none.
// A policy that does not validate has one finding of code "invalid" for each bad field, and no others.
//
// Lint calls the policy's Validate, Effective, Decide, Admit, Bounds and TotalWait. It does not call the functions in
// the policy's fields or use its Budget. It assumes that a wait chosen by Policy.Wait has any length up to Cap, and
// that attempts after the first 1,000 can start. Following the changes of the findings, in any order, always ends. No
// change brings an earlier policy back.
//
//	code                        level            found if
//	inline-wait-too-long        warning, severe  a caller waits more than 10s, or than 60s, between attempts
//	invalid                     severe           Validate refuses the policy
//	list-longer-than-attempts   warning          Delays has waits for which there is no attempt
//	long-hint-inline            note, warning    a server's hint can make a caller wait more than 10s, or than 60s
//	missing-unit                severe           a duration is below 1µs, as a number without a unit is
//	no-attempt-timeout          note, warning    nothing ends an attempt that hangs; a warning inline without a deadline
//	no-budget                   note, warning    nothing bounds the share of retries; a warning from 5 attempts on, inline or within a minute
//	no-jitter                   note to severe   all clients return together; a note if a JitterRatio below 0.5 spreads them a
//	                                             little, or if Clients is not set and the first wait is 5s or more, as for jobs; one
//	                                             level up from 1,000 clients on, nothing for one
//	no-retry-can-start          note, severe     the second attempt comes too late for TTL or deadline; a note if a short wait allows it
//	timeout-below-duration      warning, severe  AttemptTimeout cuts off more than 5 %, or 50 %, of healthy attempts
//	unlimited-without-ttl       warning, severe  a run that keeps failing never ends; severe inline
//	unreachable-attempts        note, warning    TTL or deadline make attempts impossible; a note if short waits allow all of them,
//	                                             or if they are impossible only while attempts hang until their timeout
//	zero-delay                  note to severe   waits of a List are 0: a note for the first alone, severe for an endless loop
func Lint(p retry.Policy, s Setting) []Finding {
	if err := p.Validate(); err != nil {
		return invalid(err)
	}
	l := newLinter(p, s)
	var found []Finding
	for _, rule := range lintRules {
		if f := rule.find(l); f.Level > 0 {
			f.Code = rule.code
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, graver)
	return found
}

// lintRules are the rules of Lint. A Finding of Level zero is none.
var lintRules = []struct {
	code string
	find func(*linter) Finding
}{
	{"inline-wait-too-long", (*linter).inlineWaitTooLong},
	{"list-longer-than-attempts", (*linter).listLonger},
	{"long-hint-inline", (*linter).longHintInline},
	{"missing-unit", (*linter).missingUnit},
	{"no-attempt-timeout", (*linter).noAttemptTimeout},
	{"no-budget", (*linter).noBudget},
	{"no-jitter", (*linter).noJitter},
	{"no-retry-can-start", (*linter).noRetryCanStart},
	{"timeout-below-duration", (*linter).timeoutBelowDuration},
	{"unlimited-without-ttl", (*linter).unlimitedWithoutTTL},
	{"unreachable-attempts", (*linter).unreachableAttempts},
	{"zero-delay", (*linter).zeroDelay},
}

// budgetChange is the change that bounds the retries of a fleet.
const budgetChange = "Set Budget to retry.NewBudget(retry.BudgetConfig{}), shared by all calls to one backend."

// codeInvalid is the code of a field that Validate refuses.
const codeInvalid = "invalid"

// Codes returns every code that Lint can return, sorted.
func Codes() []string {
	codes := []string{codeInvalid}
	for _, rule := range lintRules {
		codes = append(codes, rule.code)
	}
	slices.Sort(codes)
	return codes
}

// invalid returns a finding for each field that Validate refused. The zero value of a field is always valid in itself.
func invalid(err error) (found []Finding) {
	var all retry.FieldErrors
	errors.As(err, &all)
	for _, err := range all {
		var bad *retry.FieldError
		errors.As(err, &bad)
		field := strings.TrimPrefix(bad.Field, "Policy.")
		change := "Set " + field + " to 0."
		if field == "Delays" { // an empty list, although Mode asks for one
			change = "Set Mode to 0."
		}
		text := field + " " + bad.Value + " " + bad.Rule + ", and Do refuses the policy."
		found = append(found, Finding{Code: codeInvalid, Level: Severe, Text: text, Change: change})
	}
	return found
}
