package retryconf

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// FieldError is one fault in a document, a Spec or a definition. errors.As finds the first, FieldErrors returns all of
// them. errors.As also finds it as a *retry.FieldError, like the bad fields of any other package.
type FieldError struct {
	Path  string // the key, with its place in the document: "policies.invoice-email.factor"; "" if it is unknown
	Value string // the value as given or as printed, shortened if it is long; "" if there is none
	Rule  string // the rule that the value breaks
}

// Error returns one line: `retryconf: base "30" has no unit; write it as a string such as "30s"`.
func (e *FieldError) Error() string {
	parts := slices.DeleteFunc([]string{e.Path, e.Value, e.Rule}, func(part string) bool { return part == "" })
	return "retryconf: " + strings.Join(parts, " ")
}

// Unwrap returns e as a *retry.FieldError of package "retryconf".
func (e *FieldError) Unwrap() error {
	return &retry.FieldError{Package: "retryconf", Field: e.Path, Value: e.Value, Rule: e.Rule}
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
	bad.Append(&FieldError{path, value, rule})
}

// at returns a *FieldError with the given path in place of its own.
func at(path string, err error) error {
	e := *err.(*FieldError)
	e.Path = path
	return &e
}

// pathOf returns the path of a *FieldError.
func pathOf(err error) string { return err.(*FieldError).Path }

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
