package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page is the output of the program today: a change of a policy, a law or the simulation shows as a change of the
// page.
func TestThePageIsWhatTheProgramWrites(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, page(t.Context(), &text))
	written, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Equal(t, string(written), text.String(), "write it anew: go generate ./examples/policies")
}

func TestEachKeyOfTheDocumentHasItsReason(t *testing.T) {
	given, err := keys()
	require.NoError(t, err)
	require.Len(t, given, len(policies()))
	for _, p := range policies() {
		explained := map[string]bool{}
		for _, y := range p.why {
			require.Contains(t, given[p.name], y.key, p.name)
			require.False(t, explained[y.key], "%s: %s twice", p.name, y.key)
			explained[y.key] = true
		}
		require.Len(t, explained, len(given[p.name]), p.name)
	}
}

// The policy that is linted is the one that is certified.
func TestSettingAndFleetAgree(t *testing.T) {
	for _, p := range policies() {
		require.Equal(t, p.use.Clients, p.fleet.Clients, p.name)
		require.Equal(t, p.use.Deadline, p.fleet.Deadline, p.name)
		require.Equal(t, p.budget, p.fleet.Budget, p.name)
	}
}
