package retryplan

import (
	"errors"
	"fmt"
)

// FieldError is one bad field of a Model, Scenario, Fleet or Requirements. Find it with errors.As.
type FieldError struct {
	Field string // with its type: "Scenario.Clients"
	Value string // as the user would write it: "-1"
	Rule  string // the rule that it breaks: "is negative"
}

// Error returns "retryplan: Scenario.Clients -1 is negative".
func (e *FieldError) Error() string {
	return fmt.Sprintf("retryplan: %s %s %s", e.Field, e.Value, e.Rule)
}

// faults collects every bad field, so that all are told at once.
type faults []error

func (f *faults) add(field string, value any, rule string) {
	*f = append(*f, &FieldError{Field: field, Value: fmt.Sprint(value), Rule: rule})
}

func (f faults) err() error { return errors.Join(f...) }
