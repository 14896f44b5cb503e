package jobsui

import (
	"fmt"
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

// keys are the keys of a list's address, in the order of the page.
var keys = []string{"q", "status", "reason", "policy", "kind", "since", "until", "at", "over", "live"}

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
	v.filter.Statuses = chosen(v, "status", retryjob.Statuses())
	v.filter.Reasons = chosen(v, "reason", retryjob.Reasons())
	v.filter.Policies, v.filter.Kinds = v.values["policy"], v.values["kind"]
	v.filter.Since, v.filter.Until = v.time("since", now), v.time("until", now)
	if f := &v.filter; !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		v.bad["until"] = "is not after “changed since”"
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

// chosen returns those of all whose texts the key has.
func chosen[T any](v *view, key string, all []T) []T {
	var found []T
	for _, text := range v.values[key] {
		i := slices.IndexFunc(all, func(one T) bool { return fmt.Sprint(one) == text })
		if i < 0 {
			v.bad[key] = "is not a " + key
			continue
		}
		found = append(found, all[i])
	}
	return found
}

// longestAgo is the longest time ago in days: more than a hundred years, less than a Duration holds.
const longestAgo = 40_000

// time returns the time that a key means: RFC 3339, or that long before now ("90m", "7d").
func (v *view) time(key string, now time.Time) time.Time {
	text := v.values.Get(key)
	if text == "" {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil && n <= longestAgo {
			return now.Add(-time.Duration(n) * 24 * time.Hour)
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago)
	}
	v.bad[key] = "is neither a time ago (90m, 24h, 7d) nor a time (" + now.UTC().Format(time.RFC3339) + ")"
	return time.Time{}
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
// or the first 64 KiB of its payload.
func (v *view) matches(i *retryjob.Info) bool {
	if v.search == "" {
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), v.search) }
	if has(i.JobID) || has(i.Correlation) || has(i.Policy) || has(i.Kind) || has(string(i.Payload[:min(len(i.Payload), shownPayload)])) {
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

// reason returns the text of a reason, "" for none.
func reason(r retry.Reason) string {
	if r == 0 {
		return ""
	}
	return r.Error()
}
