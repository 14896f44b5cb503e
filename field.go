package retry

import (
	"fmt"
	"strings"
	"time"
)

// FieldError is one bad field of a Policy or Backoff: what Validate found, in parts. Find it with errors.As.
type FieldError struct {
	Field string // with its type: "Policy.Cap"
	Value string // as the user would write it: "1s"
	Rule  string // the rule that it breaks: "is below Base 5s"
}

// Error returns "retry: Policy.Cap 1s is below Base 5s".
func (e *FieldError) Error() string { return "retry: " + e.text() }

func (e *FieldError) text() string { return e.Field + " " + e.Value + " " + e.Rule }

// fieldErrors are all bad fields of one value; it is an error where there is one at least.
type fieldErrors []error

// add notes a bad field. Each item of rule after the first is a value that the rule names.
func (bad *fieldErrors) add(owner, field string, value any, rule string, named ...any) {
	for _, v := range named {
		rule += " " + printed(v)
	}
	*bad = append(*bad, &FieldError{Field: owner + "." + field, Value: printed(value), Rule: rule})
}

func (bad fieldErrors) err() error {
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// Error returns one line: "retry: Policy.MaxAttempts -2 is below -1; Policy.Cap 1s is below Base 5s".
func (bad fieldErrors) Error() string {
	texts := make([]string, len(bad))
	for i, err := range bad {
		texts[i] = err.(*FieldError).text()
	}
	return "retry: " + strings.Join(texts, "; ")
}

// Unwrap returns each FieldError.
func (bad fieldErrors) Unwrap() []error { return bad }

func printed(v any) string {
	if d, ok := v.(time.Duration); ok {
		return compact(d)
	}
	return fmt.Sprint(v)
}

func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
