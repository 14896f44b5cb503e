package retryplantest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/retrygo/retry/retryplan/retryplantest"
)

// recorder is a test that only keeps what it is to report.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Error(args ...any)              { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, a ...any) { r.Error(fmt.Sprintf(format, a...)) }
func (r *recorder) Log(args ...any)                { r.logs = append(r.logs, fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, a ...any)   { r.Log(fmt.Sprintf(format, a...)) }

var (
	sound = retry.Policy{
		Name: "charge", MaxAttempts: 3, AttemptTimeout: time.Second,
		Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter},
	}
	fleet = retryplan.Fleet{Rate: 70, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
)

func funded() retryplan.Fleet {
	f := fleet
	f.Budget = &retry.BudgetConfig{}
	return f
}

func TestCheck(t *testing.T) {
	still := sound
	still.Jitter = retry.NoJitter
	own := sound
	own.Budget = retry.NewBudget(retry.BudgetConfig{})
	broken := sound
	broken.MaxAttempts = -7
	small := fleet
	small.Rate, small.Trigger.For = 45, 100*time.Millisecond
	for _, row := range []struct {
		name    string
		policy  retry.Policy
		options retryplantest.Options
		errors  []string // what each error begins with
		logs    []string
	}{
		{"a sound policy in a fleet that comes back passes", sound, retryplantest.Options{Fleet: funded()}, nil, nil},
		{"a finding fails with what to change", still, retryplantest.Options{Fleet: funded()}, []string{"charge: warning no-jitter: "}, nil},
		{"a finding beneath the level is logged", still, retryplantest.Options{Fleet: funded(), Fail: retryplan.Severe}, nil,
			[]string{"charge: warning no-jitter: "}},
		{"a finding that is meant to be is logged with its reason", still,
			retryplantest.Options{Fleet: funded(), Ignore: map[string]string{"no-jitter": "one client"}}, nil, []string{"charge: warning no-jitter: "}},
		{"a policy without a name is the policy", retry.Policy{MaxAttempts: -7}, retryplantest.Options{}, []string{"policy: severe invalid: "}, nil},
		{"a fleet that does not come back fails", sound, retryplantest.Options{Fleet: fleet, Ignore: map[string]string{"no-budget": "to see a storm"}},
			[]string{"charge: severe metastable: The fleet does not recover from its trigger by itself: in a storm 70 runs/s become 210 attempts/s"},
			[]string{"charge: note no-budget: "}},
		{"a fleet that larger trouble tips is a note", sound, retryplantest.Options{Fleet: small}, nil,
			[]string{"charge: note no-budget: ", "charge: note vulnerable: "}},
		{"and fails a test that asks for it", sound, retryplantest.Options{Fleet: small, Fail: retryplan.Note},
			[]string{"charge: note no-budget: ", "charge: note vulnerable: "}, nil},
		{"a fleet that is none is an error", sound, retryplantest.Options{Fleet: retryplan.Fleet{Rate: 70}},
			[]string{"charge: retryplan: Fleet.Capacity 0 "}, []string{"charge: note no-budget: "}},
		{"a policy with a budget wants one in the fleet", own, retryplantest.Options{Fleet: fleet},
			[]string{"charge: Options.Fleet.Budget is nil, but the policy has a Budget"}, nil},
		{"a policy that is invalid is one finding", broken, retryplantest.Options{Fleet: fleet}, []string{"charge: severe invalid: "}, nil},
		{"what is ignored exists, has a reason and is found", sound, retryplantest.Options{Fleet: funded(), Ignore: map[string]string{
			"no-gitter": "a slip", "no-jitter": "mended since", "metastable": " ",
		}}, []string{"charge: Ignore: metastable has no reason", `charge: Ignore: there is no finding "no-gitter"`, "charge: Ignore: no-jitter is not found"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r recorder
			retryplantest.Check(&r, row.policy, row.options)
			begin := func(want, got []string) {
				require.Len(t, got, len(want), "%q", got)
				for i := range want {
					require.True(t, strings.HasPrefix(got[i], want[i]), got[i])
				}
			}
			begin(row.errors, r.errors)
			begin(row.logs, r.logs)
			for _, text := range r.errors {
				require.Equal(t, strings.Contains(text, "no-jitter: "), strings.Contains(text, "\n\tdo: Set Jitter to retry.FullJitter."), text)
			}
		})
	}
}

// The setting of Lint takes what it lacks from the fleet: no retry can start within a deadline of 50ms.
func TestTheFleetIsPartOfTheSetting(t *testing.T) {
	f := funded()
	f.Deadline = 50 * time.Millisecond
	var r recorder
	p := sound
	p.Jitter = retry.NoJitter
	retryplantest.Check(&r, p, retryplantest.Options{Fleet: f})
	require.Contains(t, strings.Join(r.errors, "\n"), "no-retry-can-start")
}
