package retryplantest_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/retrygo/retry/retryplan/retryplantest"
)

func ExampleCheck() {
	chargePolicy := retry.Policy{
		Name: "charge", MaxAttempts: 4, AttemptTimeout: time.Second,
		Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter},
	}
	var t recorder // the *testing.T of a test
	retryplantest.Check(&t, chargePolicy, retryplantest.Options{
		Fleet: retryplan.Fleet{Rate: 70, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}},
		Ignore: map[string]string{
			"no-budget": "to show what happens then",
		},
	})
	fmt.Println(strings.Join(t.errors, "\n"))
	// Output:
	// charge: severe metastable: The fleet does not recover from its trigger by itself: in a storm 70 runs/s become 280 attempts/s, and the backend does 100 (law: hidden-capacity).
	// 	do: Set Budget, or fewer attempts.
}
