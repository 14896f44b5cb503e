package retrysql_test

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// refusal is an error with a SQLSTATE, like those of pgx and lib/pq.
type refusal struct{ state string }

func (r refusal) Error() string    { return "ERROR " + r.state }
func (r refusal) SQLState() string { return r.state }

func ExampleJudge() {
	for _, err := range []error{refusal{"40001"}, refusal{"23505"}, driver.ErrBadConn} {
		for _, phase := range []retrysql.Phase{retrysql.Statement, retrysql.Commit} {
			v := retrysql.Judge(phase, err)
			fmt.Printf("%-9v %v: %v, ambiguous: %v\n", phase, v.Reason, v.Class, v.Ambiguous)
		}
	}
	// Output:
	// statement serialization_failure: retryable, ambiguous: false
	// commit    serialization_failure: retryable, ambiguous: false
	// statement unique_violation: terminal, ambiguous: false
	// commit    unique_violation: terminal, ambiguous: false
	// statement connection_lost: retryable, ambiguous: false
	// commit    connection_lost: terminal, ambiguous: true
}

func ExampleClassify() {
	fmt.Println(retrysql.Classify(refusal{"40P01"}))
	fmt.Println(retrysql.Classify(fmt.Errorf("insert: %w", refusal{"42601"})))
	fmt.Println(retrysql.Classify(errors.New("insufficient funds")))
	// Output:
	// retryable
	// terminal
	// unknown
}

func ExampleReasonOf() {
	fmt.Println(retrysql.ReasonOf(fmt.Errorf("insert: %w", refusal{"55P03"})))
	// Output: lock_timeout
}

func ExampleOnReason() {
	// A role that may never write: another connection does not help.
	classify := retry.FirstOf(retrysql.OnReason(retry.Terminal, retrysql.ReadOnlyServer), retrysql.Classify)
	fmt.Println(retrysql.Classify(refusal{"25006"}), classify(refusal{"25006"}), classify(refusal{"40001"}))
	// Output: retryable terminal retryable
}
