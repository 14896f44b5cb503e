package cli

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// mix makes one fleet of several policies.
type mix struct{ shares []float64 }

func (m *mix) add(flags *pflag.FlagSet) {
	flags.Float64SliceVar(&m.shares, "mix", nil, "make one fleet of the policies: the share of its runs that follows each")
}

// of returns the policies that fleets follow first, and those that others of the same fleet follow.
func (m *mix) of(found []named) (first []named, others []retryplan.Population, err error) {
	if m.shares == nil {
		return found, nil, nil
	}
	if len(m.shares) != len(found) || len(found) < 2 {
		return nil, nil, misusef("--mix has %s, and there is %s", plural(len(m.shares), "share"), plural(len(found), "policy"))
	}
	sum := 0.0
	for i, share := range m.shares {
		sum += share
		if !(share > 0 && share < 1) {
			return nil, nil, misusef("--mix %v is outside (0,1)", share)
		}
		found[i].share = share
		if i > 0 {
			others = append(others, retryplan.Population{Policy: found[i].policy, Share: share})
		}
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return nil, nil, misusef("--mix has shares that add up to %s, not to 1", say.Number(sum))
	}
	first = found[:1:1]
	first[0].others = found[1:]
	return first, others, nil
}

// all returns the policies of a fleet.
func (n named) all() []named { return append([]named{n}, n.others...) }
