package retryplan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryplan"
)

func TestEnumerationsPrint(t *testing.T) {
	var printed []string
	for _, v := range []fmt.Stringer{
		retryplan.Stall, retryplan.Outage, retryplan.Slowdown, retryplan.CapacityCut, retryplan.Surge, retryplan.Failing,
		retryplan.TriggerKind(0), retryplan.TriggerKind(7),
		retryplan.Note, retryplan.Warning, retryplan.Severe, retryplan.Level(0), retryplan.Level(4),
	} {
		printed = append(printed, v.String())
	}
	require.Equal(t, []string{
		"stall", "outage", "slowdown", "capacity_cut", "surge", "failing", "", "TriggerKind(7)",
		"note", "warning", "severe", "", "Level(4)",
	}, printed)
}
