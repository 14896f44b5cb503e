package jobsui

import (
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
	maxBack   = 10        // pages that "newer" leads back; beyond them it leads to the newest
)

// fields are the keys of the fields of the form, in its order; keys are those of a list's address.
var (
	fields = append([]string{"q"}, retryjob.FilterKeys()...)
	keys   = append(slices.Clone(fields), "text", "at", "over", "live")
)

// view is what the address of a list says.
type view struct {
	values url.Values // of keys; no value is empty
	filter retryjob.Filter
	search string   // in lower case
	at     []cursor // the beginnings of the pages before this one, and of this one
	span   *span
	bad    map[string]string // the errors of the values by key
}

// parseView returns the view that values mean at now. A view with bad values selects nothing and must not be acted on.
func parseView(values url.Values, now time.Time) *view {
	v := &view{values: url.Values{}, span: &spans[1], bad: map[string]string{}}
	for _, key := range keys {
		for _, value := range values[key] {
			if value = strings.TrimSpace(value); value == "" || slices.Contains(v.values[key], value) {
				continue
			}
			if len(value) > maxValue || len(v.values[key]) == maxValues {
				v.bad[key] = "is too long"
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
			v.bad[e.Field] = e.Rule
		}
	}
	for _, text := range v.values["at"] {
		c, ok := parseCursor(text)
		if !ok {
			v.bad["at"] = "is not a place in a list"
		}
		v.at = append(v.at, c)
	}
	if i := slices.IndexFunc(spans, func(s span) bool { return s.Key == v.values.Get("over") }); i >= 0 {
		v.span = &spans[i]
	}
	return v
}

// with returns the relative address of the view with other values of a key, none for "". Another filter starts at the
// newest job.
func (v *view) with(key string, values ...string) string {
	changed := url.Values{}
	for k, old := range v.values {
		if k != key && (k != "at" || key == "over" || key == "live") {
			changed[k] = old
		}
	}
	for _, value := range values {
		if value != "" {
			changed.Add(key, value)
		}
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

// back returns the address of the page before this one.
func (v *view) back() string {
	if len(v.at) < 2 {
		return v.with("at")
	}
	return v.with("at", v.values["at"][:len(v.at)-1]...)
}

// older returns the address of the page that begins after c.
func (v *view) older(c cursor) string {
	at := append(slices.Clone(v.values["at"]), c.String())
	return v.with("at", at[max(0, len(at)-maxBack):]...)
}

// matches reports whether the text that is searched is in the job: in its ID, correlation, policy, kind, codes, errors,
// or the first 64 KiB of its payload, but not in what Redact hides.
func (h *handler) matches(v *view, i *retryjob.Info) bool {
	if v.search == "" {
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), v.search) }
	if has(i.JobID) || has(i.Correlation) || has(i.Policy) || has(i.Kind) ||
		has(string(i.Payload[:min(len(i.Payload), shownPayload)])) && has(h.payload(i)) {
		return true
	}
	return slices.ContainsFunc(i.History, func(a retryjob.Attempt) bool { return has(a.Err) || has(a.Code) })
}

// cursor is the place after a job in a list. Engines sort by Record.Changed, some to the microsecond only.
type cursor struct {
	micros int64 // Record.Changed since 1970
	id     string
}

func cursorOf(i *retryjob.Info) cursor { return cursor{i.Changed().UnixMicro(), i.JobID} }

// place returns the cursor for a filter.
func (c cursor) place() retryjob.Cursor {
	return retryjob.Cursor{Changed: time.UnixMicro(c.micros), ID: c.id}
}

// String returns the form of a cursor in an address.
func (c cursor) String() string { return strconv.FormatInt(c.micros, 36) + "." + c.id }

func parseCursor(text string) (cursor, bool) {
	number, id, ok := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(number, 36, 64)
	return cursor{micros, id}, ok && err == nil && id != ""
}

// payload returns the beginning of a job's payload as it is shown.
func (h *handler) payload(i *retryjob.Info) string {
	return string(h.Redact(i.Payload[:min(len(i.Payload), shownPayload)]))
}

// reason returns the text of a reason, "" for none.
func reason(r retry.Reason) string {
	if r == 0 {
		return ""
	}
	return r.Error()
}
