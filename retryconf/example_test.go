package retryconf_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func ExampleParse() {
	body := `{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`
	s, err := retryconf.Parse([]byte(body), retryconf.Spec{}, retryconf.ServiceLimits())
	fmt.Println(s.MaxAttempts, s.Base, err)

	_, err = retryconf.Parse([]byte(`{"max_attempts": 1000, "factor": 1000}`), retryconf.Spec{}, retryconf.ServiceLimits())
	fmt.Println(err)
	_, err = retryconf.Parse([]byte(`{"base": 30, "max_atempts": 3}`), retryconf.Spec{}, retryconf.ServiceLimits())
	fmt.Println(err)
	// Output:
	// 12 10s <nil>
	// retryconf: max_attempts 1000 is outside 1 to 50; factor 1000 is outside 1 to 100
	// retryconf: base 30 is a number (write it as a string with its unit, such as "30s"); max_atempts is not a known key (did you mean "max_attempts"?)
}

func ExampleSpec_Policy() {
	var s retryconf.Spec
	if err := json.Unmarshal([]byte(`{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`), &s); err != nil {
		fmt.Println(err)
		return
	}
	p, err := s.Policy()
	fmt.Println(p, err)
	// Output:
	// 12 attempts, exponential 10s ×2, cap 30m: 10s 20s 40s 1m20s 2m40s 5m20s 10m40s 21m20s 30m 30m 30m (2h12m30s in all) <nil>
}

func ExampleFromPolicy() {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second}, Budget: retry.NewBudget(retry.BudgetConfig{})}
	s, err := retryconf.FromPolicy(p)
	fmt.Println(err)
	text, _ := json.Marshal(s)
	fmt.Println(string(text))
	// Output:
	// retryconf: Budget cannot be expressed as data
	// {"max_attempts":3,"base":"1s"}
}

func ExampleSpec_Or() {
	team := retryconf.Spec{MaxAttempts: 5, Base: retryconf.Duration(time.Second), Factor: 3}
	mine := retryconf.Spec{Base: retryconf.Duration(2 * time.Second)}
	p, _ := mine.Or(team).Policy()
	fmt.Println(p)
	// Output:
	// 5 attempts, exponential 2s ×3, cap 1h: 2s 6s 18s 54s (1m20s in all)
}

func ExampleFromEnviron() {
	s, err := retryconf.FromEnviron("RETRY_", []string{"HOME=/", "RETRY_MAX_ATTEMPTS=3", "RETRY_BASE=10s"}) // os.Environ()
	p, _ := s.Policy()
	fmt.Println(p, err)
	_, err = retryconf.FromEnviron("RETRY_", []string{"RETRY_BASE=10"})
	fmt.Println(err)
	// Output:
	// 3 attempts, exponential 10s ×2, cap 1h: 10s 20s (30s in all) <nil>
	// retryconf: RETRY_BASE "10" has no unit (write it as a string such as "10s")
}

func ExampleDuration_flag() {
	var s retryconf.Spec
	flags := flag.NewFlagSet("mailer", flag.ContinueOnError)
	flags.TextVar(&s.Base, "base", s.Base, "first wait")
	flags.TextVar(&s.MaxAttempts, "attempts", s.MaxAttempts, `attempts in all, or "unlimited"`)
	err := flags.Parse([]string{"-base", "250ms", "-attempts", "unlimited"})
	fmt.Println(s.Base, s.MaxAttempts, err)
	// Output:
	// 250ms unlimited <nil>
}

func ExampleSpec_SetDelays() {
	var s retryconf.Spec
	flags := flag.NewFlagSet("mailer", flag.ContinueOnError)
	flags.Func("delays", "waits with commas between them", s.SetDelays)
	err := flags.Parse([]string{"-delays", "1m,30m,3h"})
	p, _ := s.Policy()
	fmt.Println(p, err)
	// Output:
	// 4 attempts, list: 1m 30m 3h (3h31m in all) <nil>
}

func ExampleLimits_Check() {
	limits := retryconf.Limits{MaxAttempts: 5, MaxDelay: time.Minute}
	fmt.Println(limits.Check(retry.Policy{}))
	// Output:
	// retryconf: max_attempts 8 (the default) is outside 1 to 5; cap 5m20s is the longest wait, above the 1m allowed
}

func ExampleCatalog() {
	var catalog retryconf.Catalog
	invoiceEmail := catalog.Define("invoice-email", retry.Policy{MaxAttempts: 5})
	fmt.Println(invoiceEmail.Policy())

	err := catalog.Load(strings.NewReader(`{
		"defaults": {"attempt_timeout": "10s"},
		"policies": {"invoice-email": {"base": "1s", "cap": "4s"}}
	}`))
	fmt.Println(invoiceEmail.Policy(), err)
	err = catalog.Load(strings.NewReader(`{"policies": {"invoice-email": {"factor": "2"}, "invoice-mail": {}}}`))
	fmt.Println(err)
	// Output:
	// invoice-email: 5 attempts, exponential 5s ×2, cap 1h: 5s 10s 20s 40s (1m15s in all)
	// invoice-email: 5 attempts, exponential 1s ×2, cap 4s, attempt timeout 10s: 1s 2s 4s 4s (11s in all) <nil>
	// retryconf: policies.invoice-email.factor "2" is not a number; policies.invoice-mail is not defined in the code (did you mean "invoice-email"?)
}

func ExampleCatalog_Load_extends() {
	var catalog retryconf.Catalog
	catalog.Define("email", retry.Policy{})
	reminder := catalog.Define("reminder", retry.Policy{})
	err := catalog.Load(strings.NewReader(`{"policies": {
		"email": {"extends": "standard", "ttl": "4h"},
		"reminder": {"extends": "email", "max_attempts": 3}
	}}`))
	fmt.Println(reminder.Policy(), err)
	// Output:
	// reminder: 3 attempts, list, TTL 4h: 1m 30m (31m in all) <nil>
}

func ExampleCatalog_WriteTo() {
	var catalog retryconf.Catalog
	catalog.Define("search", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 20 * time.Millisecond}})
	_, _ = catalog.WriteTo(os.Stdout)
	// Output:
	// {
	//   "policies": {
	//     "search": {
	//       "max_attempts": 3,
	//       "base": "20ms",
	//       "jitter": "none",
	//       "retries_enabled": true
	//     }
	//   }
	// }
}

func ExampleCatalog_All() {
	var catalog retryconf.Catalog
	catalog.Define("search", retry.Policy{MaxAttempts: 3})
	catalog.Define("email", retry.Policy{Backoff: retry.Standard().Backoff})
	_ = catalog.Load(strings.NewReader(`{"policies": {"search": {"base": "20ms"}}}`))
	for _, e := range catalog.All() {
		fmt.Println(e.Name, e.Loaded, e.Policy)
	}
	// Output:
	// email false email: 4 attempts, list: 1m 30m 3h (3h31m in all)
	// search true search: 3 attempts, exponential 20ms ×2, cap 1h: 20ms 40ms (60ms in all)
}

func ExampleCatalog_Lookup() {
	var catalog retryconf.Catalog
	catalog.Define("search", retry.Policy{MaxAttempts: 3})
	ref, ok := catalog.Lookup("search")
	fmt.Println(ref.Name(), ok)
	_, ok = catalog.Lookup("email")
	fmt.Println(ok)
	// Output:
	// search true
	// false
}
