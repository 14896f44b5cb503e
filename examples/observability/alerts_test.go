package main

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// readAlerts reads alerts.yaml as Prometheus does: unknown fields, expressions and templates that it would refuse are
// errors.
func readAlerts(t *testing.T) (rules []rulefmt.Rule) {
	text, err := os.ReadFile("alerts.yaml")
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

func TestEachAlertAsksForWhatIsEmittedAndSaysWhatToDo(t *testing.T) {
	e := emit(t)
	names := map[string]bool{}
	for _, rule := range readAlerts(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			require.False(t, names[rule.Alert], "twice")
			names[rule.Alert] = true
			q, err := e.read(rule.Expr)
			require.NoError(t, err)
			require.Empty(t, q.unknown)
			require.Subset(t, q.groups, shownIn(rule.Annotations["summary"]+rule.Annotations["description"]))
			require.Positive(t, rule.For)
			require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"])
			require.NotEmpty(t, rule.Annotations["summary"])
			require.NotEmpty(t, rule.Annotations["description"])
		})
	}
}

// The counters of one policy in these cases. Each is at 100 when the case begins, as in a process that has run for a
// while.
const (
	allFine   = `retry_runs_total{retry_policy="mail",retry_status="succeeded",retry_kind="succeeded_without_retry"}`
	recovered = `retry_runs_total{retry_policy="mail",retry_status="succeeded",retry_kind="succeeded_with_retry"}`
	dead      = `retry_runs_total{retry_policy="mail",retry_status="dead_letter",retry_reason="terminal_error",retry_kind="failed_with_retry"}`
	ordinary  = `retry_runs_total{retry_policy="mail",retry_status="not_retried",retry_reason="terminal_error",retry_kind="failed_without_retry"}`
	refused   = `retry_runs_total{retry_policy="mail",retry_status="dead_letter",retry_reason="budget_exhausted",retry_kind="failed_without_retry"}`
	tooLate   = `retry_runs_total{retry_policy="mail",retry_status="expired",retry_reason="deadline_too_near",retry_kind="failed_without_retry"}`
	canceled  = `retry_runs_total{retry_policy="mail",retry_status="canceled",retry_reason="caller_canceled",retry_kind="failed_without_retry"}`
	attempted = `retry_attempts_total{retry_policy="mail",retry_class="succeeded"}`
	failed    = `retry_attempts_total{retry_policy="mail",retry_class="retryable"}`
	tooPoor   = `retry_budget_tokens{retry_budget="mail"}`
	overflows = `retry_budget_overflows_total{retry_budget="tenants"}`
)

func TestEachAlertFiresWhenItShould(t *testing.T) {
	var (
		mail     = []string{`{retry_policy="mail"}`}
		mailDead = []string{`{retry_policy="mail", retry_reason="terminal_error"}`}
		mailLate = []string{`{retry_policy="mail", retry_reason="deadline_too_near"}`}
		tenants  = []string{`{retry_budget="tenants"}`}
	)
	rules := readAlerts(t)
	tested := map[string]bool{}
	for _, c := range []struct {
		alert, name string
		given       series
		fires       []string // the labels of each alert that fires within two hours
	}{
		{"RetryBudgetExhausted", "refusals for ten minutes", series{refused: during(10, 20, 0.5)}, mail},
		{"RetryBudgetExhausted", "one refusal", series{refused: once(10, 1)}, nil},
		{"RetryBudgetExhausted", "a minute of refusals", series{refused: during(10, 11, 10)}, nil},
		{"RetryBudgetExhausted", "an empty budget that nobody asks", series{tooPoor: once(10, -100)}, nil},
		{"RetryBudgetExhausted", "dead letters of another reason", series{dead: during(10, 60, 1)}, nil},
		{"RetryDeadLettersGrowing", "one in five minutes for an hour", series{dead: during(10, 70, 0.2)}, mailDead},
		{"RetryDeadLettersGrowing", "one", series{dead: once(10, 1)}, nil},
		{"RetryDeadLettersGrowing", "a hundred at once", series{dead: once(10, 100)}, nil},
		{"RetryDeadLettersGrowing", "an outage of a quarter of an hour", series{dead: during(10, 25, 60)}, nil},
		{"RetryDeadLettersGrowing", "runs that expire", series{tooLate: during(10, 70, 60)}, nil},
		{"RetryDeadLettersGrowing", "ordinary errors all the time", series{ordinary: during(0, 120, 60)}, nil},
		{"RetryRunsFailing", "most of many runs", series{allFine: during(0, 120, 40), ordinary: during(0, 120, 60)}, mail},
		{"RetryRunsFailing", "some of many runs", series{allFine: during(0, 120, 60), ordinary: during(0, 120, 40)}, nil},
		{"RetryRunsFailing", "three a minute, for six minutes", series{allFine: during(0, 20, 3), dead: during(20, 26, 3)}, mail},
		{"RetryRunsFailing", "one in two minutes, all night", series{ordinary: during(0, 120, 0.5)}, nil},
		{"RetryRunsFailing", "two of two", series{ordinary: once(10, 2)}, nil},
		{"RetryRunsFailing", "canceled calls", series{canceled: during(0, 120, 60)}, nil},
		{"RetryJobsFailing", "all attempts, for five minutes", series{attempted: during(0, 20, 60), failed: during(20, 25, 60)}, mail},
		{"RetryJobsFailing", "three a minute, for five minutes", series{attempted: during(0, 20, 3), failed: during(20, 25, 3)}, mail},
		{"RetryJobsFailing", "all attempts, for a minute", series{attempted: during(0, 20, 60), failed: during(20, 21, 60)}, nil},
		{"RetryJobsFailing", "most attempts", series{attempted: during(0, 120, 10), failed: during(0, 120, 90)}, nil},
		{"RetryJobsFailing", "two of two", series{failed: once(10, 2)}, nil},
		{"RetryJobsFailing", "runs fail too", series{failed: during(0, 120, 60), dead: during(0, 120, 20)}, nil},
		{"RetryRatioHigh", "a third of many runs", series{allFine: during(0, 120, 40), recovered: during(0, 120, 20)}, mail},
		{"RetryRatioHigh", "a tenth of many runs", series{allFine: during(0, 120, 90), recovered: during(0, 120, 10)}, nil},
		{"RetryRatioHigh", "all of a few runs", series{recovered: during(0, 120, 0.5)}, nil},
		{"RetryRatioHigh", "failures without a retry", series{allFine: during(0, 120, 60), ordinary: during(0, 120, 60)}, nil},
		{"RetryRunsExpiring", "a tenth of many runs", series{allFine: during(0, 120, 90), tooLate: during(0, 120, 10)}, mailLate},
		{"RetryRunsExpiring", "a fiftieth of many runs", series{allFine: during(0, 120, 98), tooLate: during(0, 120, 2)}, nil},
		{"RetryRunsExpiring", "all of a few runs", series{tooLate: during(0, 120, 0.5)}, nil},
		{"RetryRunsExpiring", "ten minutes of it", series{allFine: during(0, 120, 90), tooLate: during(20, 21, 90)}, nil},
		{"RetryBudgetsOverflow", "one in ten minutes", series{overflows: during(0, 120, 0.1)}, tenants},
		{"RetryBudgetsOverflow", "one", series{overflows: once(10, 1)}, nil},
	} {
		tested[c.alert] = true
		t.Run(c.alert+"/"+c.name, func(t *testing.T) {
			at := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == c.alert })
			require.NotEqual(t, -1, at)
			require.Equal(t, c.fires, firing(t, c.given, rules[at].Expr, time.Duration(rules[at].For)))
		})
	}
	for _, rule := range rules {
		require.True(t, tested[rule.Alert], "%s has no case", rule.Alert)
	}
}
