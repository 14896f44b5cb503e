package retryjob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// Job is work to be done later, or again. It is data, so that any engine can keep it; what to do with it is the Handler
// of its Kind.
type Job struct {
	// ID stays the same over all attempts and replays, and no two jobs of an engine share one. Empty means one that is
	// made up, which is best: it tells an aged-out job from one that never was.
	ID string `json:"id"`
	// Kind names the Handler: two characters or more, of letters, digits and _-./:+[]<> in ASCII, the first a letter, a digit
	// or an underscore.
	Kind string `json:"kind"`
	// Policy names the policy, so that a job that waits is decided about by what that name means when it runs.
	Policy string `json:"policy"`
	// Payload is what the handler works on: JSON, as databases want it, of 16 MiB and 500 levels at most. Empty means null,
	// and null arrives as empty.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Correlation ties the job to what caused it, such as a trace. Empty means nothing.
	Correlation string `json:"correlation,omitempty"`
	// Due is when the first attempt is to start at the earliest, and the TTL begins, in the year 9998 at the latest. Zero, and
	// the past, mean at once.
	Due time.Time `json:"due,omitzero"`
}

// Handler works on the jobs of one kind. ctx ends after the policy's AttemptTimeout, and when the engine is shut down or
// the job canceled; AttemptFrom(ctx) returns which attempt it is. A panic counts as a failure with a *PanicError.
type Handler func(ctx context.Context, job Job) error

const (
	longestName = 255     // bytes of ID, Kind, Policy and Correlation: what an index of a database takes
	longestText = 1 << 10 // bytes of an error's text in a Record

	// SQLite reads no JSON of more than 1,000 levels, and what an engine adds to a payload counts there.
	largestPayload, deepestPayload = 16 << 20, 500
)

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule it breaks. Refused are: an ID, Kind,
// Policy or Correlation that is too short, too long or not printable, a Kind with other characters than Kind allows, a Policy
// that policies does not know (ErrUnknownPolicy), a Payload that is not JSON, too long or too deep, and a Due that JSON cannot hold. Every engine
// validates a job before it takes it.
func (j *Job) Validate(policies Policies) error {
	var bad retry.FieldErrors
	for _, f := range [...]struct {
		name, value string
		least       int
	}{{"Job.ID", j.ID, 0}, {"Job.Kind", j.Kind, 2}, {"Job.Policy", j.Policy, 1}, {"Job.Correlation", j.Correlation, 0}} {
		switch {
		case len(f.value) < f.least:
			bad.Add("retryjob", f.name, strconv.Quote(f.value), fmt.Sprintf("is shorter than %d bytes", f.least))
		case len(f.value) > longestName:
			bad.Add("retryjob", f.name, strconv.Quote(f.value[:40])+"...", fmt.Sprintf("is longer than %d bytes", longestName))
		case !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, isControl):
			bad.Add("retryjob", f.name, strconv.Quote(f.value), "has bytes that are not text")
		case f.name == "Job.Kind" && !isKind(f.value):
			bad.Add("retryjob", f.name, strconv.Quote(f.value), "is not of letters, digits and _-./:+[]<>, after a letter, digit or underscore")
		case f.name == "Job.Policy":
			if _, ok := policies.lookup(f.value); !ok {
				bad.Append(unknownPolicy{&retry.FieldError{
					Package: "retryjob", Field: f.name, Value: strconv.Quote(f.value), Rule: "is not the name of a valid policy",
				}})
			}
		}
	}
	if j.Due.UTC().Year() > 9998 {
		bad.Add("retryjob", "Job.Due", j.Due, "is after the year 9998")
	}
	refuse := func(rule string, than ...any) {
		bad.Add("retryjob", "Job.Payload", fmt.Sprintf("of %d bytes", len(j.Payload)), rule, than...)
	}
	switch {
	case len(j.Payload) > largestPayload:
		refuse("is longer than", largestPayload)
	case len(j.Payload) > 0 && !(json.Valid(j.Payload) && utf8.Valid(j.Payload)):
		refuse("is not JSON")
	case depth(j.Payload) > deepestPayload:
		refuse("has more levels than", deepestPayload)
	}
	return bad.Err()
}

// depth returns how many arrays and objects are within each other in valid JSON.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}

// unknownPolicy is a bad field that matches ErrUnknownPolicy.
type unknownPolicy struct{ *retry.FieldError }

func (unknownPolicy) Is(target error) bool { return target == ErrUnknownPolicy }
func (e unknownPolicy) Unwrap() error      { return e.FieldError }

func isControl(r rune) bool { return unicode.IsControl(r) }

// isKind reports whether s has the characters of a Kind.
func isKind(s string) bool {
	return !strings.ContainsFunc(s, notOfKind) && strings.IndexByte("-./:+[]<>", s[0]) < 0
}

// notOfKind reports whether no Kind has r. River allows the same, and the middle dot.
func notOfKind(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:+[]<>", r))
}

// Policies finds the policy of a name. It must be safe for concurrent use.
type Policies func(name string) (retry.Policy, bool)

// FromCatalog finds what c means by a name at the time it is asked.
func FromCatalog(c *retryconf.Catalog) Policies {
	return func(name string) (retry.Policy, bool) {
		ref, ok := c.Lookup(name)
		if !ok {
			return retry.Policy{}, false
		}
		return ref.Policy(), true
	}
}

// FromMap finds the policies of m, which must not change any more.
func FromMap(m map[string]retry.Policy) Policies {
	return func(name string) (retry.Policy, bool) {
		p, ok := m[name]
		return p, ok
	}
}

// lookup is p(name), named for errors and events; a nil p knows none, and a policy that does not validate counts as unknown.
func (p Policies) lookup(name string) (retry.Policy, bool) {
	if p == nil {
		return retry.Policy{}, false
	}
	found, ok := p(name)
	if !ok || found.Validate() != nil {
		return retry.Policy{}, false
	}
	if found.Name == "" {
		found.Name = name
	}
	return found, true
}

// The errors of every engine, found by errors.Is.
var (
	// ErrUnknownPolicy: no valid policy has that name.
	ErrUnknownPolicy = errors.New("retryjob: unknown policy")
	// ErrUnknownKind: there is no handler for that kind.
	ErrUnknownKind = errors.New("retryjob: unknown kind")
	// ErrUnknownJob: the engine has no job with that ID. ErrAgedOut and ErrNeverKnown match it too.
	ErrUnknownJob = errors.New("retryjob: unknown job")
	// ErrAgedOut: the engine had a job with that ID, which has been removed since.
	ErrAgedOut = fmt.Errorf("%w: aged out", ErrUnknownJob)
	// ErrNeverKnown: the engine has never had a job with that ID.
	ErrNeverKnown = fmt.Errorf("%w: never known here", ErrUnknownJob)
	// ErrDuplicate: a job with that ID is there already.
	ErrDuplicate = errors.New("retryjob: a job with that ID is there already")
	// ErrNotReplayable: the job is not dead-lettered, expired or failed.
	ErrNotReplayable = errors.New("retryjob: only dead-lettered, expired and failed jobs are replayed")
	// ErrShutdown: the engine is shut down, or about to.
	ErrShutdown = errors.New("retryjob: the engine is shut down")
	// ErrLost is the error of an attempt whose worker died before it could record how the attempt ended.
	ErrLost = errors.New("retryjob: the worker was lost")
)

// NewID returns a random ID of 26 letters and digits.
func NewID() string { return strings.ToLower(rand.Text()) }
