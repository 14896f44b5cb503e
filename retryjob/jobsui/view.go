package jobsui

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

const (
	maxForm   = 256 << 10 // bytes of a form: 500 IDs of 255 bytes, escaped
	maxValue  = 1 << 10   // bytes of a value in the address
	maxValues = 20        // values of one key in the address
)

// fields are the keys of the fields of the form, in its order. keys are those of a list's address.
var (
	fields = append([]string{"q"}, retryjob.FilterKeys()...)
	keys   = append(slices.Clone(fields), "text", "at", "live", "routine")
)

// view is the state in the address of a list.
type view struct {
	values url.Values // of keys; no value is empty
	filter retryjob.Filter
	search string            // in lower case
	Bad    map[string]string // the errors of the values by key
}

// parseView returns the view that values mean at now. A view with bad values selects nothing and must not be acted on.
func parseView(values url.Values, now time.Time) *view {
	v := &view{values: url.Values{}, Bad: map[string]string{}}
	for _, key := range keys {
		for _, value := range values[key] {
			if value = strings.TrimSpace(value); value == "" || slices.Contains(v.values[key], value) {
				continue
			}
			if len(value) > maxValue || len(v.values[key]) == maxValues {
				v.Bad[key] = "is too long"
				break
			}
			v.values.Add(key, value)
		}
	}
	v.search = strings.ToLower(v.values.Get("q"))
	var err error
	v.filter, err = retryjob.ParseFilter(v.values, now)
	var bad retry.FieldErrors
	errors.As(err, &bad)
	for _, err := range bad {
		if e := new(retry.FieldError); errors.As(err, &e) {
			v.Bad[e.Field] = e.Rule
		}
	}
	if at := v.values.Get("at"); at != "" {
		var ok bool
		if v.filter.After, ok = parseCursor(at); !ok {
			v.Bad["at"] = "is not a place in a list"
		}
	}
	return v
}

// folds reports whether the list leaves out the successes of each schedule but the newest: a schedule of seconds would
// fill the page with them. A list that is about successes, or about a schedule, has them all.
func (v *view) folds() bool {
	return v.search == "" && !v.values.Has("routine") && len(v.filter.Statuses)+len(v.filter.Tags)+len(v.filter.Kinds)+len(v.filter.IDs) == 0
}

// Query returns the view as the query of an address.
func (v *view) Query() string { return v.values.Encode() }

// with returns the relative address of the view with another value of a key, none for "". Another filter starts at the
// newest job.
func (v *view) with(key, value string) string {
	changed := url.Values{}
	for k, old := range v.values {
		if k != key && (k != "at" || key == "live") {
			changed[k] = old
		}
	}
	if value != "" {
		changed.Set(key, value)
	}
	return list(changed)
}

// list returns the relative address of a list.
func list(values url.Values) string {
	if query := values.Encode(); query != "" {
		return "./?" + query
	}
	return "./"
}

// matches reports whether the text that is searched is in the job: in its ID, correlation, policy, kind, codes, errors,
// or the first 64 KiB of its payload, but not in the parts that Redact hides.
func (h *handler) matches(v *view, i *retryjob.Info) bool {
	if v.search == "" {
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), v.search) }
	if has(i.JobID) || has(i.Correlation) || has(i.Policy) || has(i.Kind) ||
		has(string(i.Payload[:min(len(i.Payload), shownPayload)])) && has(string(h.payload(i))) {
		return true
	}
	return slices.ContainsFunc(i.History, func(a retryjob.Attempt) bool { return has(a.Code) || has(a.Err) && has(RedactText(a.Err)) })
}

// cursorText returns the form of a cursor in an address. Engines sort by Record.Changed, some to the microsecond only.
func cursorText(c retryjob.Cursor) string {
	return strconv.FormatInt(c.Changed.UnixMicro(), 36) + "." + c.ID
}

func parseCursor(text string) (retryjob.Cursor, bool) {
	number, id, ok := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(number, 36, 64)
	return retryjob.Cursor{Changed: time.UnixMicro(micros), ID: id}, ok && err == nil && id != ""
}

// payload returns the beginning of a job's payload as Redact leaves it.
func (h *handler) payload(i *retryjob.Info) json.RawMessage {
	return h.Redact(i.Payload[:min(len(i.Payload), shownPayload)])
}
