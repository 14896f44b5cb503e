package contest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
)

func TestValidate(t *testing.T) {
	sample := func() float64 { return 0 }
	ours := contest.Contender{Name: "retry", Form: contest.Ours, New: nothing}
	for _, row := range []struct {
		name     string
		scenario contest.Scenario
		err      string // empty means none
	}{
		{"the least", contest.Scenario{Name: "s", Unit: "ns/op", Contenders: []contest.Contender{ours}}, ""},
		{"one name in two forms", contest.Scenario{Name: "s", Unit: "ns/op", Contenders: []contest.Contender{
			{Name: "peer", Form: contest.Fastest, New: nothing}, {Name: "peer", Form: contest.Usual, Sample: sample},
		}}, ""},
		{"nothing", contest.Scenario{}, `contest: scenario "": Name is empty
contest: scenario "": Unit is empty
contest: scenario "": there are no contenders`},
		{"cores", contest.Scenario{Name: "s", Unit: "ns/op", Cores: []int{0, 2, 2}, Contenders: []contest.Contender{ours}},
			`contest: scenario "s": Cores 0 is below 1 or there twice
contest: scenario "s": Cores 2 is below 1 or there twice`},
		{"contenders", contest.Scenario{Name: "s", Unit: "B", Contenders: []contest.Contender{
			{Name: "", Form: contest.Ours, Sample: sample}, {Name: "a", Form: "mine", Sample: sample},
			{Name: "b", Form: contest.Ours}, {Name: "c", Form: contest.Ours, New: nothing, Sample: sample},
			{Name: "d", Form: contest.Limit, New: nothing}, {Name: "d", Form: contest.Limit, Sample: sample},
		}}, `contest: scenario "s": contender "" of form "ours" has no name or an unknown form
contest: scenario "s": contender "a" of form "mine" has no name or an unknown form
contest: scenario "s": contender "b" must have one of New and Sample
contest: scenario "s": contender "c" must have one of New and Sample
contest: scenario "s": contender "d" has New, so Unit must be ns/op, not B
contest: scenario "s": contender "d" of form "limit" is there twice`},
		{"a target", contest.Scenario{Name: "s", Unit: "ns/op", Contenders: []contest.Contender{ours}, Targets: []contest.Target{
			{Rule: "100% fair", Kind: contest.Best},
		}}, `contest: scenario "s", target "100% fair": there is no peer to compare with`},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.scenario.Validate()
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, row.err)
			}
		})
	}
}
