package retry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/internal/show"
)

// FieldError is one bad field of a value of this module, or of a document. Find it with errors.As. It can be marshaled
// to JSON as an answer to the field's author.
type FieldError struct {
	Package string `json:"-"`               // the package that refuses it. Empty means "retry"
	Field   string `json:"field,omitempty"` // "Policy.Cap", or a document's key. Empty means that it is not known
	Value   string `json:"value,omitempty"` // the value as the user would write it, such as "1s". May be empty
	Rule    string `json:"rule"`            // the rule that the value breaks, such as "is below Base 5s"
	Line    int    `json:"line,omitzero"`   // of the field in a document, from 1. Zero means that it is not known
}

// Error returns a text such as "retry: Policy.Cap 1s is below Base 5s".
func (e *FieldError) Error() string {
	line := ""
	if e.Line > 0 {
		line = fmt.Sprintf("line %d:", e.Line)
	}
	parts := slices.DeleteFunc([]string{line, e.Field, e.Value, e.Rule}, func(part string) bool { return part == "" })
	return oneLine(cmp.Or(e.Package, "retry") + ": " + strings.Join(parts, " "))
}

// FieldErrors collects all bad fields of one value, each of them a *FieldError. It is for Validate methods.
type FieldErrors []error

// Refuse notes that the value of a field breaks rule. field has the package, unless that is retry, the type and the
// field, such as "retryhttp.Transport.Base" or "Policy.Cap". named are values that complete the rule, as in
// Refuse(field, v, "is above", limit). Durations are printed in short form, such as "1h".
func (bad *FieldErrors) Refuse(field string, value any, rule string, named ...any) {
	for _, v := range named {
		rule += " " + printed(v)
	}
	e := &FieldError{Field: field, Value: printed(value), Rule: rule}
	if pkg, rest, ok := strings.Cut(field, "."); ok && strings.Trim(pkg, "abcdefghijklmnopqrstuvwxyz") == "" {
		e.Package, e.Field = pkg, rest
	}
	*bad = append(*bad, e)
}

// refuse is Refuse if bad is true. It is generic so that a good value is not boxed.
func refuse[T any](bad *FieldErrors, is bool, field string, value T, rule string) {
	if is {
		bad.Refuse(field, value, rule)
	}
}

// Append adds the bad fields in err, which another Validate returned. Append(nil) has no effect.
func (bad *FieldErrors) Append(err error) {
	switch e := err.(type) {
	case nil:
	case FieldErrors:
		*bad = append(*bad, e...)
	default:
		*bad = append(*bad, err)
	}
}

// Err returns bad, or nil if it is empty.
func (bad FieldErrors) Err() error {
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// Error returns one line, such as "retry: Policy.TTL -1s is negative; Policy.MaxHint -1s is negative". A package is
// named once.
func (bad FieldErrors) Error() string {
	texts := make([]string, len(bad))
	named := "" // the prefix of the text before
	for i, err := range bad {
		prefix := packagePrefix(err)
		texts[i] = oneLine(err.Error())
		if prefix == named {
			texts[i] = strings.TrimPrefix(texts[i], prefix)
		}
		named = prefix
	}
	return strings.Join(texts, "; ")
}

// packagePrefix returns "retry: " or the prefix of another package for a FieldError, and "" for any other error.
func packagePrefix(err error) string {
	var e *FieldError
	if !errors.As(err, &e) {
		return ""
	}
	return cmp.Or(e.Package, "retry") + ": "
}

// Unwrap returns each bad field.
func (bad FieldErrors) Unwrap() []error { return bad }

func printed(v any) string {
	if d, ok := v.(time.Duration); ok {
		return show.Duration(d)
	}
	return fmt.Sprint(v)
}
