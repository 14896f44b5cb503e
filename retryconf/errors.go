package retryconf

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// FieldError is one thing that is wrong with a document, a Spec or a definition. Find the first with errors.As, and all of
// them with FieldErrors.
type FieldError struct {
	Path  string // the key, with its place in the document: "policies.invoice-email.factor"; "" where it is not known
	Value string // as it was given or as it prints, shortened where it is long; "" where there is none
	Rule  string // what is wrong with it
}

// Error returns one line: `retryconf: base "30" has no unit; write it as a string such as "30s"`.
func (e *FieldError) Error() string { return "retryconf: " + e.text() }

func (e *FieldError) text() string {
	var parts []string
	for _, part := range []string{e.Path, e.Value, e.Rule} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// fieldErrors are all that is wrong, an error where there is one at least.
type fieldErrors []error

func (bad *fieldErrors) add(path, value, rule string) {
	*bad = append(*bad, &FieldError{path, value, rule})
}

// at adds what err says of the field at path.
func (bad *fieldErrors) at(path string, err error) {
	e := *err.(*FieldError)
	e.Path = path
	*bad = append(*bad, &e)
}

// FieldErrors returns everything that an error of this package names, nil where it names nothing.
func FieldErrors(err error) []*FieldError {
	var all fieldErrors
	if errors.As(err, &all) {
		list := make([]*FieldError, len(all))
		for i, err := range all {
			list[i] = err.(*FieldError)
		}
		return list
	}
	var one *FieldError
	if errors.As(err, &one) {
		return []*FieldError{one}
	}
	return nil
}

// names reports whether something is wrong with the field at path itself.
func (bad fieldErrors) names(path string) bool {
	return slices.ContainsFunc(bad, func(err error) bool { return err.(*FieldError).Path == path })
}

// below returns what is wrong with each path put below the given one.
func (bad fieldErrors) below(path string) fieldErrors {
	moved := make(fieldErrors, 0, len(bad))
	for _, err := range bad {
		e := *err.(*FieldError)
		moved.at(under(path, e.Path), &e)
	}
	return moved
}

// sorted returns what is wrong in the order of paths, each thing once: a fault is found again wherever it is extended.
// It lists no more than can be mended at once.
func (bad fieldErrors) sorted() fieldErrors {
	slices.SortStableFunc(bad, func(a, b error) int {
		return strings.Compare(a.(*FieldError).Path, b.(*FieldError).Path)
	})
	bad = slices.CompactFunc(bad, func(a, b error) bool { return *a.(*FieldError) == *b.(*FieldError) })
	if len(bad) > maxFaults {
		bad = append(bad[:maxFaults:maxFaults], &FieldError{Rule: "there are more faults than are listed"})
	}
	return bad
}

func (bad fieldErrors) err() error {
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// Error returns one line with all that is wrong, each part after a "; ".
func (bad fieldErrors) Error() string {
	texts := make([]string, len(bad))
	for i, err := range bad {
		texts[i] = err.(*FieldError).text()
	}
	return "retryconf: " + strings.Join(texts, "; ")
}

// Unwrap returns each FieldError.
func (bad fieldErrors) Unwrap() []error { return bad }

// valueError is what is wrong with a text whose key the caller knows.
func valueError(text, rule string) error { return &FieldError{Value: quoted(text), Rule: rule} }

// shownText is how much of a value an error shows.
const shownText = 40

// quoted returns text in quotes, shortened.
func quoted(text string) string {
	if len(text) > shownText {
		return strconv.QuoteToASCII(text[:shownText]) + "..."
	}
	return strconv.Quote(text)
}

// under returns the path of key in the section at path. A key that is long or does not print is shown in quotes.
func under(path, key string) string {
	if path == "" {
		return shortened(key)
	}
	return path + "." + shortened(key)
}
