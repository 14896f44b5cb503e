package retryconf

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// fault returns the error of a value at path. The path is empty if the fault is not in one field, or if only the caller
// knows the key. The value is the text as given or as printed, shortened if it is long.
func fault(path, value, rule string) *retry.FieldError {
	return &retry.FieldError{Package: "retryconf", Field: path, Value: value, Rule: rule}
}

func add(bad *retry.FieldErrors, path, value, rule string) {
	*bad = append(*bad, fault(path, value, rule))
}

func at(path string, err error) error {
	e := *err.(*retry.FieldError)
	e.Field = path
	return &e
}

func pathOf(err error) string { return err.(*retry.FieldError).Field }

// sorted returns the faults in the order of their paths. Each is listed once, although every policy that extends a
// faulty one reports its faults again.
func sorted(bad retry.FieldErrors) retry.FieldErrors {
	slices.SortStableFunc(bad, func(a, b error) int { return strings.Compare(pathOf(a), pathOf(b)) })
	bad = slices.CompactFunc(bad, func(a, b error) bool { return *a.(*retry.FieldError) == *b.(*retry.FieldError) })
	return atMost(bad)
}

// atMost returns bad, or the first maxFaults of it and that there are more.
func atMost(bad retry.FieldErrors) retry.FieldErrors {
	if len(bad) > maxFaults {
		bad = append(bad[:maxFaults:maxFaults], fault("", "", moreFaults))
	}
	return bad
}

// ofDocument returns the faults of a whole document, for the body of an answer. Each value is as in the document, a
// text in quotes. A fault that is not in one field has the field "document".
func ofDocument(bad retry.FieldErrors) retry.FieldErrors {
	for i, err := range bad {
		e := *err.(*retry.FieldError)
		if e.Value != "" && e.Value[0] != '"' && !json.Valid([]byte(e.Value)) {
			e.Value = quoted(e.Value)
		}
		if e.Field == "" {
			e.Field, e.Rule = "document", strings.TrimPrefix(e.Rule, theDocument)
		}
		bad[i] = &e
	}
	return bad
}

// valueError is a fault in a text. The caller knows its key.
func valueError(text, rule string) error { return fault("", quoted(text), rule) }

// shownText is how many bytes of a value an error shows.
const shownText = 40

func quoted(text string) string {
	if len(text) > shownText {
		return strconv.QuoteToASCII(text[:shownText]) + "..."
	}
	return strconv.Quote(text)
}

// under returns the path of key in the section at path. A key that is long or not printable is quoted.
func under(path, key string) string {
	if key == "" {
		key = `""`
	}
	if path == "" {
		return shortened(key)
	}
	return path + "." + shortened(key)
}
