package retryplan

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// pkg is Package of this package's field errors.
const pkg = "retryplan"

// validateAt refuses a policy that does not validate, or that has state of a running program, under the name that of
// returns for each of its fields.
func validateAt(p retry.Policy, of func(field string) string, bad *retry.FieldErrors) {
	var found retry.FieldErrors
	found.Append(p.Validate())
	for _, field := range found {
		if e, ok := field.(*retry.FieldError); ok {
			field = &retry.FieldError{Package: pkg, Field: of(e.Field), Value: e.Value, Rule: e.Rule}
		}
		bad.Append(field)
	}
	stateless(bad, p, of("Policy."), "")
}

// stateless refuses a policy with state of a running program, and names the replacement of a Budget.
func stateless(bad *retry.FieldErrors, p retry.Policy, prefix, budget string) {
	const state = "is state of a running program"
	refuse(bad, p.Budget != nil, prefix+"Budget", "(set)", state+budget)
	refuse(bad, p.Gate != nil, prefix+"Gate", "(set)", state)
	refuse(bad, p.Pay != nil, prefix+"Pay", "(set)", state)
}

// refuse adds a field to bad if its value is refused.
func refuse(bad *retry.FieldErrors, refused bool, field string, value any, rule string) {
	if refused {
		bad.Refuse(pkg+"."+field, value, rule)
	}
}

func negative[T int | time.Duration](bad *retry.FieldErrors, field string, x T) {
	refuse(bad, x < 0, field, x, "is negative")
}

// inRange refuses a number that cannot be the rate or the capacity of a Fleet or Chain.
func inRange(bad *retry.FieldErrors, field string, x float64) {
	refuse(bad, !(x > 0), field, x, "is not above 0")
	refuse(bad, x > 0 && !(x >= 1e-9 && x <= 1e9), field, x, "is outside [1e-9, 1e9]")
}

// indexedField returns the name of an element of a field, such as "Chain.Layers[1]".
func indexedField(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
