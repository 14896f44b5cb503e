package migrate

import "fmt"

// library describes a library.
type library struct {
	name   string
	why    string         // why none of its calls is moved
	marks  []string       // what makes or names errors for its own runs
	calls  map[string]int // those that are reported, and the index of the work in their arguments; -1 if it is not moved
	fields []string       // the fields of its BackOff that have a counterpart
	plan   func(*site, *plan) error
}

const byHand = "it is not moved by machine: docs/migrating has such calls before and after"

var libraries = map[string]*library{
	"github.com/cenkalti/backoff/v4": backoffV4,
	"github.com/cenkalti/backoff/v5": backoffV5,
	"github.com/avast/retry-go/v4":   {name: "retry-go/v4", why: byHand, calls: map[string]int{"Do": 0, "DoWithData": 0}},
	"github.com/avast/retry-go/v5":   {name: "retry-go/v5", why: byHand, calls: map[string]int{"Retrier.Do": 0, "RetrierWithData.Do": 0}},
	"github.com/sethvargo/go-retry": {name: "go-retry", why: byHand,
		calls: map[string]int{"Do": 2, "DoValue": 2, "Constant": 2, "Exponential": 2, "Fibonacci": 2}},
	"github.com/hashicorp/go-retryablehttp": {name: "go-retryablehttp",
		why:   "after the last attempt it returns an error, and retryhttp returns the last response: see docs/migrating",
		calls: map[string]int{"NewClient": -1, "Get": -1, "Head": -1, "Post": -1, "PostForm": -1}},
}

// refusal is the reason why a site is not moved.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }
