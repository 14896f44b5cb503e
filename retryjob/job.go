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

// Job is work to be done later, or again. It is plain data, so that any engine can store it. The Handler of its Kind
// does the work. ID, Policy, BudgetKey and Correlation are up to 255 bytes of printable UTF-8: letters,
// marks, numbers, punctuation, symbols and the ASCII space.
type Job struct {
	// ID stays the same over all attempts and replays. No two jobs of an engine have the same ID, of whatever kind. If
	// empty, the engine generates an ID (recommended). From a generated ID an engine can tell that a job existed even
	// after the job has aged out. IDs that begin with "recurring:" are those of Options.Recurring.
	ID string `json:"id"`
	// Kind names the Handler. It has 2 to 255 ASCII letters, digits and characters of _-./:+[]<>, and begins with a
	// letter, a digit or an underscore. Empty is refused.
	Kind string `json:"kind"`
	// Policy names the policy. The name is looked up at each attempt, so that a waiting job follows a policy that has
	// changed. Empty means the policy that Policies returns for jobs without a name.
	Policy string `json:"policy,omitempty"`
	// Spec has the job's own settings: each field that is set replaces that of the policy, except the name of a named
	// policy. It has up to 256 delays. Nil means no Spec.
	Spec *retryconf.Spec `json:"spec,omitempty"`
	// TTL replaces that of the policy and of the Spec. Zero means the Spec's TTL if it has one, and otherwise the
	// policy's. Negative is refused.
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// BudgetKey is a key, such as a tenant and an endpoint, by which Policies may choose the retry.Budget. Empty means
	// none.
	BudgetKey string `json:"budget_key,omitempty"`
	// Queue names a group of jobs with its own workers, as many as Options.Queues says. It has up to 64 lower-case
	// letters and digits, with single - or _ between them. Empty means "default".
	Queue string `json:"queue,omitempty"`
	// Priority orders the due jobs of a Queue: from 1, which starts first, to 4. Zero means 1.
	Priority int `json:"priority,omitempty"`
	// Tags are for people who read lists of jobs. There are up to 64. Each has 3 to 255 ASCII letters, digits,
	// underscores and, except at its ends, hyphens.
	Tags []string `json:"tags,omitempty"`
	// Payload is the input of the handler: JSON of up to 16 MiB and 500 levels, since databases store it as JSON. Empty
	// means null, and the handler gets null as empty.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Correlation identifies the cause of the job, such as a trace. Empty means none.
	Correlation string `json:"correlation,omitempty"`
	// Due is the earliest time of the first attempt, and the time at which the TTL begins. It is in the year 9998 at
	// the latest. Zero, and a time in the past, mean at once.
	Due time.Time `json:"due,omitzero"`

	enqueued   bool // set when Validate asks for the policy
	occurrence bool // of a Recurring, with an ID that others must not use
}

// Handler does the work of jobs of one kind. ctx ends after the policy's AttemptTimeout, when the job is canceled, and
// when the context of Shutdown ends. AttemptFrom(ctx) describes the attempt. A panic counts as a failure with a
// *PanicError.
type Handler func(ctx context.Context, job Job) error

const (
	longestName = 255 // bytes of ID, Kind, Policy, BudgetKey, Correlation and each tag, so that databases can index them
	mostTags    = 64
	mostDelays  = 256     // of a Spec, since each Record has it
	longestText = 1 << 10 // bytes of an error's text in a Record

	// SQLite does not read JSON of more than 1,000 levels, including the levels that an engine adds to a payload.
	largestPayload, deepestPayload = 16 << 20, 500
)

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule it breaks. It refuses an ID,
// Kind, Policy, BudgetKey, Correlation, Queue or tag that is too short, too long or not printable, or that has a character
// that the field does not allow; more than 64 Tags or 256 delays; a Spec with a hedge; a Policy that policies does not
// know (ErrUnknownPolicy); a policy that is not valid or exceeds the limits of Policies.Within; a negative TTL; a Priority
// outside 0 to 4; a Payload that is not JSON, too long or too deep; and a Due that JSON cannot hold. Every engine validates a job before it takes it.
func (j *Job) Validate(policies Policies) error {
	var bad retry.FieldErrors
	j.refuseNames(&bad)
	if _, err := policies.ask(j, true); err != nil && len(j.Policy) <= longestName && isText(j.Policy) {
		bad = append(bad, j.refusals(err)...)
	}
	j.refuseSettings(&bad)
	j.refuseTags(&bad)
	j.refusePayload(&bad)
	return bad.Err()
}

// refuseNames adds the names that are too short, too long or not printable, or that have a character that the field does
// not allow.
func (j *Job) refuseNames(bad *retry.FieldErrors) {
	for _, f := range [...]struct {
		name, value string
		least       int
	}{
		{"Job.ID", j.ID, 0},
		{"Job.Kind", j.Kind, 2},
		{"Job.Policy", j.Policy, 0},
		{"Job.BudgetKey", j.BudgetKey, 0},
		{"Job.Correlation", j.Correlation, 0},
	} {
		field := "retryjob." + f.name
		switch {
		case len(f.value) < f.least:
			bad.Refuse(field, strconv.Quote(f.value), fmt.Sprintf("is shorter than %d bytes", f.least))
		case len(f.value) > longestName:
			bad.Refuse(field, strconv.Quote(f.value[:40])+"...", fmt.Sprintf("is longer than %d bytes", longestName))
		case !isText(f.value):
			bad.Refuse(field, strconv.Quote(f.value), "has characters that are not printable, or is not UTF-8")
		case f.name == "Job.Kind" && !isKind(f.value):
			bad.Refuse(field, strconv.Quote(f.value), "is not letters, digits and _-./:+[]<> that begin with a letter, digit or underscore")
		case f.name == "Job.ID" && strings.HasPrefix(f.value, occurrencePrefix) && !j.occurrence:
			bad.Refuse(field, strconv.Quote(f.value), "begins as the IDs of recurring jobs do")
		}
	}
}

// refuseSettings adds the errors of TTL, Queue, Priority, Spec and Due.
func (j *Job) refuseSettings(bad *retry.FieldErrors) {
	if j.TTL < 0 {
		bad.Refuse("retryjob.Job.TTL", j.TTL, "is negative")
	}
	if j.Queue != "" && !isQueue(j.Queue) {
		bad.Refuse("retryjob.Job.Queue", shown(j.Queue), queueRule)
	}
	if j.Priority < 0 || j.Priority > 4 {
		bad.Refuse("retryjob.Job.Priority", j.Priority, "is outside 0 to 4")
	}
	if j.Spec != nil && len(j.Spec.Delays) > mostDelays {
		bad.Refuse("retryjob.Job.Spec.delays", fmt.Sprintf("of %d delays", len(j.Spec.Delays)), "has more than", mostDelays)
	}
	if j.Spec != nil && j.Spec.Hedge != (retryconf.Hedge{}) {
		bad.Refuse("retryjob.Job.Spec.hedge", "of a job", "is for calls that somebody waits for")
	}
	if !j.Due.IsZero() && j.Due.UTC().Year() > 9998 {
		bad.Refuse("retryjob.Job.Due", j.Due, "is after the year 9998")
	}
}

func (j *Job) refuseTags(bad *retry.FieldErrors) {
	if len(j.Tags) > mostTags {
		bad.Refuse("retryjob.Job.Tags", fmt.Sprintf("of %d tags", len(j.Tags)), "has more than", mostTags)
	}
	for i, tag := range j.Tags[:min(len(j.Tags), mostTags)] {
		if len(tag) > longestName || !ofTag.MatchString(tag) {
			bad.Refuse(fmt.Sprintf("retryjob.Job.Tags[%d]", i), shown(tag), "is not 3 to 255 letters, digits, underscores and inner hyphens")
		}
	}
}

func (j *Job) refusePayload(bad *retry.FieldErrors) {
	refuse := func(rule string, than ...any) {
		bad.Refuse("retryjob.Job.Payload", fmt.Sprintf("of %d bytes", len(j.Payload)), rule, than...)
	}
	switch {
	case len(j.Payload) > largestPayload:
		refuse("is longer than", largestPayload)
	case len(j.Payload) > 0 && !(json.Valid(j.Payload) && utf8.Valid(j.Payload)):
		refuse("is not JSON")
	case depth(j.Payload) > deepestPayload:
		refuse("has more levels than", deepestPayload)
	}
}

// depth returns the depth to which arrays and objects are nested in valid JSON.
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

const longestQueue = 64 // the limit of River's tables, which limit the characters of queues and tags too

var (
	ofQueue = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)
	ofTag   = regexp.MustCompile(`^\w[\w-]+\w$`)
)

func isQueue(s string) bool { return len(s) <= longestQueue && ofQueue.MatchString(s) }

const queueRule = "is not up to 64 lower-case letters and digits with single - or _ between them"

// shown returns s in quotes, at most 40 bytes of it.
func shown(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "..."
	}
	return strconv.Quote(s)
}

// refusals returns err, of Policies.Of, as errors of the job's fields.
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
			field = "Job.Spec." + e.Field
			ofTTL := e.Field == "ttl" && j.TTL > 0
			if j.Spec == nil || ofTTL {
				field = "Job.TTL"
			}
		}
		bad.Refuse("retryjob."+field, e.Value, e.Rule)
	}
	return bad
}

// refusedPolicy is the error of a bad field that matches why in errors.Is.
type refusedPolicy struct {
	*retry.FieldError
	why error
}

func (e refusedPolicy) Unwrap() []error { return []error{e.FieldError, e.why} }

// isText reports whether s is printable UTF-8. Characters that reorder or hide others would make one name look like
// another.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
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

// The errors of every engine. Compare with errors.Is.
var (
	// ErrUnknownPolicy means that no policy has that name.
	ErrUnknownPolicy = errors.New("retryjob: unknown policy")
	// ErrUnknownKind means that there is no handler for that kind.
	ErrUnknownKind = errors.New("retryjob: unknown kind")
	// ErrUnknownJob means that the engine has no job with that ID. ErrAgedOut and ErrNeverKnown match it too.
	ErrUnknownJob = errors.New("retryjob: unknown job")
	// ErrAgedOut means that the engine had a job with that ID, and has removed it.
	ErrAgedOut = fmt.Errorf("%w: aged out", ErrUnknownJob)
	// ErrNeverKnown means that the engine never had a job with that ID.
	ErrNeverKnown = fmt.Errorf("%w: never known here", ErrUnknownJob)
	// ErrDuplicate means that the engine has a job with that ID already. It is terminal, since repeating does not help.
	ErrDuplicate = retry.Permanent(errors.New("retryjob: a job with that ID is there already"))
	// ErrNotReplayable means that the job is not dead-lettered, expired or failed, or that it is an occurrence of a
	// Recurring of which another one has not ended.
	ErrNotReplayable = errors.New("retryjob: not replayable")
	// ErrShutdown means that the engine is shut down or shutting down.
	ErrShutdown = errors.New("retryjob: the engine is shut down")
	// ErrLost is the error of an attempt whose worker died before it could record how the attempt ended.
	ErrLost = errors.New("retryjob: the worker was lost")
)

// NewID returns a random ID of 26 letters and digits.
func NewID() string { return strings.ToLower(rand.Text()) }
