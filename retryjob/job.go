package retryjob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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
	// ID stays the same over all attempts and replays, and no two jobs of an engine share one. If empty, a random ID is
	// generated (recommended): from such an ID an engine knows that a job existed, even when it has aged out.
	ID string `json:"id"`
	// Kind names the Handler: two characters or more, of letters, digits and _-./:+[]<> in ASCII, the first a letter, a
	// digit or an underscore. Empty is refused.
	Kind string `json:"kind"`
	// Policy names the policy, so that a job that waits is decided about by what that name means when it runs. Empty
	// means the one that Policies has for such jobs.
	Policy string `json:"policy,omitempty"`
	// Spec is the job's own settings: each field that it gives takes the place of the policy's. Nil means none.
	Spec *retryconf.Spec `json:"spec,omitempty"`
	// TTL takes the place of the policy's. Zero means that, and the Spec's before it.
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// Budget is a key, such as a tenant and an endpoint, by which Policies may choose the retry.Budget. Empty means none.
	Budget string `json:"budget,omitempty"`
	// Queue names a group of jobs with workers of its own, as many as Options.Queues says: lower-case letters and
	// digits with single - or _ between them, 64 at most. Empty means "default".
	Queue string `json:"queue,omitempty"`
	// Priority is 1 for jobs that go ahead of others in their Queue that are due, down to 4. Zero means 1.
	Priority int `json:"priority,omitempty"`
	// Tags are for readers of lists of jobs: each of 3 to 255 letters, digits, _ and, inside, hyphens in ASCII.
	Tags []string `json:"tags,omitempty"`
	// Payload is what the handler works on: JSON, as databases want it, of 16 MiB and 500 levels at most. Empty means
	// null, and null arrives as empty.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Correlation ties the job to what caused it, such as a trace. Empty means nothing.
	Correlation string `json:"correlation,omitempty"`
	// Due is when the first attempt is to start at the earliest, and the TTL begins, in the year 9998 at the latest.
	// Zero, and the past, mean at once.
	Due time.Time `json:"due,omitzero"`

	enqueued bool // Validate asks for its policy
}

// Handler works on the jobs of one kind. ctx ends after the policy's AttemptTimeout, and when the engine is shut down
// or the job canceled; AttemptFrom(ctx) returns which attempt it is. A panic counts as a failure with a *PanicError.
type Handler func(ctx context.Context, job Job) error

const (
	longestName = 255     // bytes of ID, Kind, Policy, Budget, Correlation and a tag: what an index of a database takes
	longestText = 1 << 10 // bytes of an error's text in a Record

	// SQLite reads no JSON of more than 1,000 levels, and what an engine adds to a payload counts there.
	largestPayload, deepestPayload = 16 << 20, 500
)

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule it breaks. Refused are: an ID,
// Kind, Policy, Budget, Correlation, Queue or tag that is too short, too long or not printable, or has other characters
// than it may have, a Policy that policies does not know (ErrUnknownPolicy), a policy that is not valid or, by
// Policies.Within, beyond its limits, a negative TTL, a Priority outside 0 to 4, a Payload that is not JSON, too long
// or too deep, and a Due that JSON cannot hold. Every engine validates a job before it takes it.
func (j *Job) Validate(policies Policies) error {
	var bad retry.FieldErrors
	for _, f := range [...]struct {
		name, value string
		least       int
	}{{"Job.ID", j.ID, 0}, {"Job.Kind", j.Kind, 2}, {"Job.Policy", j.Policy, 0}, {"Job.Budget", j.Budget, 0}, {"Job.Correlation", j.Correlation, 0}} {
		switch {
		case len(f.value) < f.least:
			bad.Add("retryjob", f.name, strconv.Quote(f.value), fmt.Sprintf("is shorter than %d bytes", f.least))
		case len(f.value) > longestName:
			bad.Add("retryjob", f.name, strconv.Quote(f.value[:40])+"...", fmt.Sprintf("is longer than %d bytes", longestName))
		case !isText(f.value):
			bad.Add("retryjob", f.name, strconv.Quote(f.value), "has bytes that are not text")
		case f.name == "Job.Kind" && !isKind(f.value):
			bad.Add("retryjob", f.name, strconv.Quote(f.value), "is not of letters, digits and _-./:+[]<>, after a letter, digit or underscore")
		case f.name == "Job.Policy":
			if _, err := policies.ask(j, true); err != nil {
				bad = append(bad, j.refusals(err)...)
			}
		}
	}
	if j.TTL < 0 {
		bad.Add("retryjob", "Job.TTL", j.TTL, "is negative")
	}
	if j.Queue != "" && !isQueue(j.Queue) {
		bad.Add("retryjob", "Job.Queue", shown(j.Queue), "is not up to 64 lower-case letters and digits with single - or _ between them")
	}
	if j.Priority < 0 || j.Priority > 4 {
		bad.Add("retryjob", "Job.Priority", j.Priority, "is outside 0 to 4")
	}
	for i, tag := range j.Tags {
		if len(tag) > longestName || !ofTag.MatchString(tag) {
			bad.Add("retryjob", fmt.Sprintf("Job.Tags[%d]", i), shown(tag), "is not 3 to 255 letters, digits, _ and, inside, hyphens")
		}
	}
	if !j.Due.IsZero() && j.Due.UTC().Year() > 9998 {
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

const longestQueue = 64 // what River's tables allow, as are the characters of queues and tags

var (
	ofQueue = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)
	ofTag   = regexp.MustCompile(`^\w[\w-]+\w$`)
)

func isQueue(s string) bool { return len(s) <= longestQueue && ofQueue.MatchString(s) }

// shown returns a text in quotes, shortened.
func shown(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "..."
	}
	return strconv.Quote(s)
}

// refusals returns what err, of Policies.Of, says of the job's fields.
func (j *Job) refusals(err error) (bad retry.FieldErrors) {
	var faults retry.FieldErrors
	if !errors.As(err, &faults) {
		rule := "has no policy: " + err.Error()
		if errors.Is(err, ErrUnknownPolicy) {
			rule = "is not the name of a policy"
		}
		bad.Append(refusedPolicy{&retry.FieldError{Package: "retryjob", Field: "Job.Policy", Value: strconv.Quote(j.Policy), Rule: rule}, err})
		return bad
	}
	for _, fault := range faults {
		e := &retry.FieldError{Field: "Policy", Rule: fault.Error()}
		errors.As(fault, &e)
		field := "Job." + e.Field
		if e.Package == "retryconf" { // whose fields are the keys of a Spec
			if field = "Job.Spec." + e.Field; j.Spec == nil || e.Field == "ttl" && j.TTL > 0 {
				field = "Job.TTL"
			}
		}
		bad.Add("retryjob", field, e.Value, e.Rule)
	}
	return bad
}

// refusedPolicy is a bad field that matches why.
type refusedPolicy struct {
	*retry.FieldError
	why error
}

func (e refusedPolicy) Unwrap() []error { return []error{e.FieldError, e.why} }

// isText reports whether s is UTF-8 without control characters.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
		}
	}
	return true
}

// isKind reports whether s has the characters of a Kind. River allows the same, and the middle dot.
func isKind(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		case i == 0 || strings.IndexByte("-./:+[]<>", c) < 0:
			return false
		}
	}
	return true
}

// The errors of every engine, found by errors.Is.
var (
	// ErrUnknownPolicy: no policy has that name.
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
