package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

func TestJobValidate(t *testing.T) {
	known := retryjob.FromMap(map[string]retry.Policy{"p": {}, "bad": {MaxAttempts: -7}, strings.Repeat("p", 256): {}})
	long := strings.Repeat("x", 256)
	good := func(change func(*retryjob.Job)) retryjob.Job {
		j := retryjob.Job{ID: "j", Kind: "mail", Policy: "p", Payload: json.RawMessage(`{"to":"a"}`), Correlation: "c"}
		change(&j)
		return j
	}
	for _, row := range []struct {
		name string
		job  retryjob.Job
		want string // the error's text; empty means none
	}{
		{"a whole job", good(func(*retryjob.Job) {}), ""},
		{"a job without ID, payload and correlation", retryjob.Job{Kind: "ab", Policy: "p"}, ""},
		{"names of 255 bytes", good(func(j *retryjob.Job) { j.ID, j.Kind, j.Correlation = long[1:], long[1:], long[1:] }), ""},
		{"names in any language", good(func(j *retryjob.Job) { j.ID, j.Correlation = "ünï 日本", "🚀" }), ""},
		{"a kind with all that it may have", good(func(j *retryjob.Job) { j.Kind = "_a-Z/0.9:x+[y]<z>" }), ""},
		{"a kind in any language", good(func(j *retryjob.Job) { j.Kind = "日本" }), `retryjob: Job.Kind "日本" is not letters`},
		{"a kind with a space", good(func(j *retryjob.Job) { j.Kind = "a b" }), `retryjob: Job.Kind "a b" is not letters`},
		{"a kind that begins with a dash", good(func(j *retryjob.Job) { j.Kind = "-ab" }), `retryjob: Job.Kind "-ab" is not letters`},
		{"a kind of the first and the last letters and digits", good(func(j *retryjob.Job) { j.Kind = "azAZ09" }), ""},
		{"a due time that JSON cannot hold", good(func(j *retryjob.Job) { j.Due = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }), "is after the year 9998"},
		{"a due time that it can hold", good(func(j *retryjob.Job) { j.Due = time.Date(9998, 12, 31, 0, 0, 0, 0, time.UTC) }), ""},
		{"a due time in the past", good(func(j *retryjob.Job) { j.Due = epoch.Add(-time.Hour) }), ""},
		{"a payload that is null", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`null`) }), ""},
		{"an empty payload that is not nil", good(func(j *retryjob.Job) { j.Payload = json.RawMessage{} }), ""},

		{"an ID that is too long", good(func(j *retryjob.Job) { j.ID = long }), `retryjob: Job.ID "` + long[:40] + `"... is longer than 255 bytes`},
		{"a kind that is too long", good(func(j *retryjob.Job) { j.Kind = long }), "Job.Kind "},
		{"a policy that is too long, though known", good(func(j *retryjob.Job) { j.Policy = strings.Repeat("p", 256) }), `Job.Policy "pppp`},
		{"a correlation that is too long", good(func(j *retryjob.Job) { j.Correlation = long }), "Job.Correlation "},
		{"bytes count, not letters", good(func(j *retryjob.Job) { j.ID = strings.Repeat("ü", 128) }), "Job.ID "},
		{"an ID with NUL", good(func(j *retryjob.Job) { j.ID = "a\x00b" }), `retryjob: Job.ID "a\x00b" has characters that are not printable, or is not UTF-8`},
		{"an ID with a line break", good(func(j *retryjob.Job) { j.ID = "a\nb" }), "Job.ID "},
		{"an ID with DEL", good(func(j *retryjob.Job) { j.ID = "a\x7f" }), "Job.ID "},
		{"an ID that is displayed backwards", good(func(j *retryjob.Job) { j.ID = "a\u202eb" }), `retryjob: Job.ID "a\u202eb" has characters that are not printable, or is not UTF-8`},
		{"a policy with an invisible space", good(func(j *retryjob.Job) { j.Policy = "p\u200b" }), `retryjob: Job.Policy "p\u200b" has characters that are not printable, or is not UTF-8`},
		{"a key with a line separator", good(func(j *retryjob.Job) { j.BudgetKey = "a\u2028b" }), `retryjob: Job.BudgetKey "a\u2028b" has characters that are not printable, or is not UTF-8`},
		{"a hedge", good(func(j *retryjob.Job) { j.Spec = &retryconf.Spec{Hedge: retryconf.Hedge{Delay: 1}} }),
			"retryjob: Job.Spec.hedge of a job is for calls that somebody waits for"},
		{"too many delays", good(func(j *retryjob.Job) { j.Spec = &retryconf.Spec{Delays: make([]retryconf.Delay, 257)} }), "Job.Spec.delays of 257 delays has more than 256"},
		{"too many tags", good(func(j *retryjob.Job) { j.Tags = slices.Repeat([]string{"tag"}, 65) }), "retryjob: Job.Tags of 65 tags has more than 64"},
		{"an ID with a control character of C1", good(func(j *retryjob.Job) { j.ID = "a\u0085" }), "Job.ID "},
		{"an ID that is not UTF-8", good(func(j *retryjob.Job) { j.ID = "a\xff" }), "Job.ID "},
		{"a kind with a tab", good(func(j *retryjob.Job) { j.Kind = "ma\til" }), "Job.Kind "},
		{"a correlation that is not UTF-8", good(func(j *retryjob.Job) { j.Correlation = "\xc3" }), "Job.Correlation "},
		{"no kind", good(func(j *retryjob.Job) { j.Kind = "" }), `retryjob: Job.Kind "" is shorter than 2 bytes`},
		{"a kind of one byte", good(func(j *retryjob.Job) { j.Kind = "m" }), `retryjob: Job.Kind "m" is shorter than 2 bytes`},
		{"no policy", good(func(j *retryjob.Job) { j.Policy = "" }), `retryjob: Job.Policy "" is not the name of a policy`},
		{"no policy but a spec", good(func(j *retryjob.Job) { j.Policy, j.Spec = "", &retryconf.Spec{MaxAttempts: 3} }), ""},
		{"an unknown policy", good(func(j *retryjob.Job) { j.Policy = "q" }), `retryjob: Job.Policy "q" is not the name of a policy`},
		{"an unknown policy with a spec", good(func(j *retryjob.Job) { j.Policy, j.Spec = "q", &retryconf.Spec{} }), `retryjob: Job.Policy "q" is not the name of a policy`},
		{"a policy that does not validate", good(func(j *retryjob.Job) { j.Policy = "bad" }), `retryjob: Job.Policy.MaxAttempts -7 is below -1, which is Unlimited`},
		{"a spec that conflicts in itself", good(func(j *retryjob.Job) { j.Spec = &retryconf.Spec{Base: 7, Cap: 5, JitterRatio: 2} }),
			`retryjob: Job.Spec.cap 5ns is below base 7ns; Job.Spec.jitter_ratio 2 is `},
		{"a negative TTL", good(func(j *retryjob.Job) { j.TTL = -1 }), `retryjob: Job.TTL -1ns is negative`},
		{"a TTL below the AttemptTimeout", good(func(j *retryjob.Job) {
			j.TTL, j.Spec = time.Second, &retryconf.Spec{AttemptTimeout: retryconf.Duration(time.Minute)}
		}), ""},
		{"a budget that is too long", good(func(j *retryjob.Job) { j.BudgetKey = long }), "Job.BudgetKey "},
		{"the longest queue", good(func(j *retryjob.Job) { j.Queue = strings.Repeat("q", 64) }), ""},
		{"a queue that is too long", good(func(j *retryjob.Job) { j.Queue = strings.Repeat("q", 65) }), `retryjob: Job.Queue "qqqq`},
		{"a queue with a capital letter", good(func(j *retryjob.Job) { j.Queue = "Mail" }), `retryjob: Job.Queue "Mail" is not up to 64 lower-case`},
		{"a queue of two words", good(func(j *retryjob.Job) { j.Queue = "bulk-mail_2" }), ""},
		{"the last priority", good(func(j *retryjob.Job) { j.Priority = 4 }), ""},
		{"a priority after it", good(func(j *retryjob.Job) { j.Priority = 5 }), `retryjob: Job.Priority 5 is outside 0 to 4`},
		{"a negative priority", good(func(j *retryjob.Job) { j.Priority = -1 }), `retryjob: Job.Priority -1 is outside 0 to 4`},
		{"tags", good(func(j *retryjob.Job) { j.Tags = []string{"a-b", "_c_", long[1:]} }), ""},
		{"a tag that is too short", good(func(j *retryjob.Job) { j.Tags = []string{"abc", "ab"} }), `retryjob: Job.Tags[1] "ab" is not 3 to 255 letters`},
		{"a tag that is too long", good(func(j *retryjob.Job) { j.Tags = []string{long} }), `retryjob: Job.Tags[0] "xxxx`},
		{"a payload that is cut off", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`{"a":`) }), "retryjob: Job.Payload of 5 bytes is not JSON"},
		{"several bad fields", retryjob.Job{ID: "a\n", Kind: "m", Policy: "q", Payload: json.RawMessage(`{`)},
			`retryjob: Job.ID "a\n" has characters that are not printable, or is not UTF-8; Job.Kind "m" is shorter than 2 bytes; ` +
				`Job.Policy "q" is not the name of a policy; Job.Payload of 1 bytes is not JSON`},
		{"the longest payload", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`"` + strings.Repeat("x", 16<<20-2) + `"`) }), ""},
		{"a payload that is longer", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`"` + strings.Repeat("x", 16<<20-1) + `"`) }), "retryjob: Job.Payload of 16777217 bytes is longer than 16777216"},
		{"the deepest payload", good(func(j *retryjob.Job) { j.Payload = nested(500) }), ""},
		{"a payload that is deeper", good(func(j *retryjob.Job) { j.Payload = nested(501) }), "retryjob: Job.Payload of 2511 bytes has more levels than 500"},
		{"brackets in a text", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`"\\\"` + strings.Repeat("[{", 501) + `"`) }), ""},
		{"a payload that is wide", good(func(j *retryjob.Job) { j.Payload = json.RawMessage("[" + strings.Repeat(`{"a":[]},`, 501) + "1]") }), ""},
		{"a payload of two values", good(func(j *retryjob.Job) { j.Payload = json.RawMessage(`1 2`) }), "Job.Payload"},
		{"a payload that is not UTF-8", good(func(j *retryjob.Job) { j.Payload = json.RawMessage("\"\xff\"") }), "Job.Payload"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.job
			err := row.job.Validate(known)
			require.Equal(t, before, row.job)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "\n")
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, "retryjob", field.Package)
		})
	}
	t.Run("an unknown policy is found by errors.Is", func(t *testing.T) {
		for _, policies := range []retryjob.Policies{nil, retryjob.FromMap(nil), known} {
			j := retryjob.Job{Kind: "mail", Policy: "none"}
			require.ErrorIs(t, j.Validate(policies), retryjob.ErrUnknownPolicy)
		}
	})
}

func TestJobIsDataThatComesBack(t *testing.T) {
	j := retryjob.Job{ID: "j", Kind: "mail", Policy: "p", Payload: json.RawMessage(`{"a":1}`), Correlation: "c", Due: epoch}
	text, err := json.Marshal(j)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"j","kind":"mail","policy":"p","payload":{"a":1},"correlation":"c","due":"2026-11-02T09:00:00Z"}`, string(text))
	var back retryjob.Job
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, j, back)
	text, err = json.Marshal(retryjob.Job{Kind: "mail", Policy: "p"})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"","kind":"mail","policy":"p"}`, string(text))
}

func TestFromCatalogKnowsNoOtherPolicies(t *testing.T) {
	var c retryconf.Catalog
	c.Define("mail", retry.Policy{MaxAttempts: 3})
	_, err := retryjob.FromCatalog(&c)(&retryjob.Job{Policy: "fax"})
	require.ErrorIs(t, err, retryjob.ErrUnknownPolicy)
}

func TestFromMapHasWhatTheMapHadThen(t *testing.T) {
	m := map[string]retry.Policy{"mail": {MaxAttempts: 3}}
	find := retryjob.FromMap(m)
	m["mail"], m["fax"] = retry.Policy{MaxAttempts: 5}, retry.Policy{}
	p, err := find(&retryjob.Job{Policy: "mail"})
	require.NoError(t, err)
	require.Equal(t, retry.Policy{MaxAttempts: 3}, p)
	for _, job := range []retryjob.Job{{}, {Policy: "fax"}, {Policy: "fax", Spec: &retryconf.Spec{}}} {
		_, err = find(&job)
		require.ErrorIs(t, err, retryjob.ErrUnknownPolicy)
	}
}

func TestErrors(t *testing.T) {
	require.ErrorIs(t, retryjob.ErrAgedOut, retryjob.ErrUnknownJob)
	require.ErrorIs(t, retryjob.ErrNeverKnown, retryjob.ErrUnknownJob)
	require.NotErrorIs(t, retryjob.ErrAgedOut, retryjob.ErrNeverKnown)
	require.NotErrorIs(t, retryjob.ErrNeverKnown, retryjob.ErrAgedOut)
	for _, err := range []error{
		retryjob.ErrUnknownPolicy, retryjob.ErrUnknownKind, retryjob.ErrUnknownJob, retryjob.ErrAgedOut, retryjob.ErrNeverKnown,
		retryjob.ErrDuplicate, retryjob.ErrNotReplayable, retryjob.ErrShutdown, retryjob.ErrLost, retryjob.ErrCanceled,
	} {
		require.Regexp(t, "^retryjob: [^\n]+$", err.Error())
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]{26}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := retryjob.NewID()
		require.Regexp(t, form, id)
		seen[id] = true
	}
	require.Len(t, seen, 1000)
}

func TestPanicError(t *testing.T) {
	flaky := errors.New("flaky")
	for _, row := range []struct {
		name    string
		err     *retryjob.PanicError
		text    string
		unwraps error
	}{
		{"a value", &retryjob.PanicError{Value: 7, Stack: []byte("here")}, "retryjob: the handler panicked: 7", nil},
		{"an error", &retryjob.PanicError{Value: flaky}, "retryjob: the handler panicked: flaky", flaky},
		{"a wrapped error", &retryjob.PanicError{Value: fmt.Errorf("oh: %w", flaky)}, "retryjob: the handler panicked: oh: flaky", flaky},
		{"Goexit", &retryjob.PanicError{}, "retryjob: the handler ended its goroutine", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.EqualError(t, row.err, row.text)
			if row.unwraps == nil {
				require.NoError(t, row.err.Unwrap())
				return
			}
			require.ErrorIs(t, row.err, row.unwraps)
		})
	}
}

// oneJob is an engine with one job that records the calls of a Handle.
type oneJob struct{ asked []string }

func (e *oneJob) Get(_ context.Context, id string) (retryjob.Info, error) {
	e.asked = append(e.asked, "get "+id)
	return retryjob.Info{Queue: "got"}, nil
}

func (e *oneJob) Wait(ctx context.Context, id string) (retryjob.Info, error) {
	e.asked = append(e.asked, "wait "+id)
	return retryjob.Info{Queue: "waited"}, ctx.Err()
}

func TestHandle(t *testing.T) {
	var e oneJob
	h := retryjob.NewHandle("j7", &e)
	require.Equal(t, "j7", h.ID())
	i, err := h.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, "got", i.Queue)
	i, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "waited", i.Queue)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"get j7", "wait j7", "wait j7"}, e.asked)
}

// nested returns JSON of the given number of levels.
func nested(levels int) json.RawMessage {
	text := `"]\""`
	for level := range levels {
		if level%2 == 0 {
			text = `{"a":` + text + `}`
		} else {
			text = `[1,` + text + `]`
		}
	}
	return json.RawMessage(text)
}
