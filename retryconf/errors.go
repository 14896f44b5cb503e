package retryconf

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// FieldError is one fault in a document, a Spec or a definition. errors.As finds the first, FieldErrors returns all of
// them, and encoding/json writes them as an answer to the document's author, without the parts that are not known.
// errors.As also finds it as a *retry.FieldError, like the bad fields of any other package.
type FieldError struct {
	// Field is the key with its place in the document: "policies.invoice-email.factor". Empty means that the fault is
	// not in one field, or that only the caller knows its key.
	Field string `json:"field,omitempty"`
	// Value is the value as given or as printed, shortened if it is long. Empty means none.
	Value string `json:"value,omitempty"`
	// Rule is the rule that the value breaks, never empty.
	Rule string `json:"rule"`
	// Line is the line of the field in a YAML document, from 1. Zero means unknown.
	Line int `json:"line,omitzero"`
}

// Error returns one line: `retryconf: base "30" has no unit (write it as a string such as "30s")`.
func (e *FieldError) Error() string {
	line := ""
	if e.Line > 0 {
		line = fmt.Sprintf("line %d:", e.Line)
	}
	parts := slices.DeleteFunc([]string{line, e.Field, e.Value, e.Rule}, func(part string) bool { return part == "" })
	return "retryconf: " + strings.Join(parts, " ")
}

// Unwrap returns e as a *retry.FieldError of package "retryconf", without its line.
func (e *FieldError) Unwrap() error {
	return &retry.FieldError{Package: "retryconf", Field: e.Field, Value: e.Value, Rule: e.Rule}
}

// FieldErrors returns every fault that an error of this package names, in order, and nil if it names none.
func FieldErrors(err error) (all []*FieldError) {
	var bad retry.FieldErrors
	if !errors.As(err, &bad) {
		bad = retry.FieldErrors{err}
	}
	for _, err := range bad {
		var e *FieldError
		if errors.As(err, &e) {
			all = append(all, e)
		}
	}
	return all
}

// add notes a fault.
func add(bad *retry.FieldErrors, path, value, rule string) {
	bad.Append(&FieldError{Field: path, Value: value, Rule: rule})
}

// at returns a *FieldError with the given path in place of its own.
func at(path string, err error) error {
	e := *err.(*FieldError)
	e.Field = path
	return &e
}

// pathOf returns the path of a *FieldError.
func pathOf(err error) string { return err.(*FieldError).Field }

// sorted returns the faults in the order of their paths, each of them once: every policy that extends a faulty one
// reports its faults again. It returns at most maxFaults.
func sorted(bad retry.FieldErrors) retry.FieldErrors {
	slices.SortStableFunc(bad, func(a, b error) int { return strings.Compare(pathOf(a), pathOf(b)) })
	bad = slices.CompactFunc(bad, func(a, b error) bool { return *a.(*FieldError) == *b.(*FieldError) })
	if len(bad) > maxFaults {
		bad = append(bad[:maxFaults:maxFaults], &FieldError{Rule: moreFaults})
	}
	return bad
}

// valueError is a fault in a text. The caller knows its key.
func valueError(text, rule string) error { return &FieldError{Value: quoted(text), Rule: rule} }

// shownText is how many bytes of a value an error shows.
const shownText = 40

// quoted returns text in quotes, shortened.
func quoted(text string) string {
	if len(text) > shownText {
		return strconv.QuoteToASCII(text[:shownText]) + "..."
	}
	return strconv.Quote(text)
}

// under returns the path of key in the section at path. A key that is long or not printable is quoted.
func under(path, key string) string {
	if path == "" {
		return shortened(key)
	}
	return path + "." + shortened(key)
}
