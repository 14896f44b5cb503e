package retrydebug

import (
	"cmp"
	"maps"
	"slices"
)

// word is a word of the page. README.md has the same table (TestTheREADMEHasTheGuide).
type word struct {
	Word    string
	Meaning string
	Done    string // may the work be done?
	Do      string
	Well    string // when it is well again
}

const (
	inDoubt     = "in doubt"
	budgetEmpty = "budget empty"
	waiting     = "waiting"
	safe        = "perhaps; the policy treats a repeat as safe"
)

var guide = []word{
	{failing, "At least half of the runs of the last minute gave up. Runs that their callers canceled do not count.", "see the reason",
		"Read the newest error, and the row of the reason below.", "when runs succeed again; it is failed 10 s after the last that gave up"},
	{failed, "There was an outage within the last minute. Since then runs succeed, and none has given up for 10 s.", "see the reason",
		"Find out what is in doubt. Then repeat what gave up.", "after a minute without a run that gives up"},
	{someFail, "Fewer than half of the runs of the last minute gave up.", "see the reason",
		"Compare the runs that did not succeed: is it one host, one customer, one address?", "after a minute without a run that gives up"},
	{retrying, "Attempts fail, but in the last minute no run gave up.", "not yet known", "Nothing. If the retries per run grow, read the newest error.",
		"after a minute without a retry"},
	{calm, "In the last minute there was no retry, and no run gave up.", "-", "Nothing.", "-"},
	{waiting, "Runs that have failed an attempt and will make another. Jobs are not counted: they wait on the page of package jobsui.", "not yet known",
		"Nothing.", "when they end"},
	{budgetEmpty, "The budget has less than one token, so the next retry is refused. First attempts are made.", "-",
		"Mend what fails. Do not raise the budget: it keeps the retries from becoming the load.",
		"by itself when calls succeed, by default one more retry for 10 successes"},
	{inDoubt, "An attempt was sent and its answer was lost, and it must not be made twice.", "perhaps",
		"Ask the receiver, or look at its data, before you repeat the work.", "never by itself"},
	{"terminal_error", "A repeat does not mend the error.", "no, unless it is in doubt", "Mend what the error names. Until then a replay fails again.",
		"when the cause is mended"},
	{"attempts_exhausted", "Each attempt failed.", safe, "Mend what the error and the host name. Replay once the policy is calm.", "when the dependency is back"},
	{"budget_exhausted", "The budget had no token for a retry, or Policy.Pay refused it. Many calls fail.", safe,
		"Mend what fails, and do not raise the budget. Once the policy is calm, replay what gave up, a part at a time.",
		"by itself when calls succeed, by default one more retry for 10 successes"},
	{"ttl_elapsed", "The next attempt would have started after the TTL.", safe, "Repeat only what is still wanted. If it goes on in a calm, the TTL is too short for the schedule.",
		"when the dependency is back"},
	{"deadline_passed", "The deadline of the caller passed.", "perhaps, see whether it is in doubt", "Look for what is slow. The caller has an error already.",
		"when the dependency is fast again"},
	{"deadline_too_near", "The wait would have ended after the deadline of the caller.", safe, "Look for what is slow or down. If it goes on in a calm, the waits are too long for the deadline.",
		"when the dependency is back"},
	{"hint_too_long", "The server asked for a longer wait than MaxHint.", "no, unless it is in doubt", "Come back when the server asks to, and see why it limits you.", "after the time that it asked for"},
	{"retries_disabled", "The only attempt failed, under Policy.Disabled or retry.OneAttempt.", "perhaps, see whether it is in doubt",
		"Nothing if a layer above repeats it. If the retries are off for an incident, enable them after it.", "when the dependency is back"},
	{"caller_canceled", "The caller no longer wanted the result.", "perhaps, see whether it is in doubt",
		"Nothing. If there are many, look for a caller with a short timeout or a restart.", "-"},
}

// meaning returns the meaning of a word, or "" if the guide does not have it.
func meaning(of string) string { return entry(of).Meaning }

func entry(of string) word {
	i := slices.IndexFunc(guide, func(w word) bool { return w.Word == of })
	if i < 0 {
		return word{}
	}
	return guide[i]
}

// whatToDo returns what to do about the runs of the last minute that gave up. Doubt comes before the most frequent
// reason. It is "" if the guide has neither.
func whatToDo(m *Figures) string {
	of := inDoubt
	if m.InDoubt == 0 {
		of = mostFrequent(m.Reasons)[0]
	}
	do := entry(of).Do
	if do == "" {
		return ""
	}
	return of + ": " + do
}

// mostFrequent returns the reasons, the most frequent first.
func mostFrequent(reasons map[string]int) []string {
	return slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
}
