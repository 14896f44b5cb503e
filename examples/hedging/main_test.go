package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var picture strings.Builder
		require.NoError(t, measure(&picture))
		t.Log("\n" + picture.String())
		figures := map[string][2]string{}
		for _, line := range strings.Split(picture.String(), "\n") {
			if name, rest, found := strings.Cut(line, " within"); found {
				fields := strings.Fields(rest)
				figures[strings.TrimSpace(name)] = [2]string(fields)
			}
		}
		for _, name := range []string{"99%", "99.9%"} {
			bare, err := time.ParseDuration(figures[name][0])
			require.NoError(t, err)
			hedged, err := time.ParseDuration(figures[name][1])
			require.NoError(t, err)
			require.Less(t, 5*hedged, bare, name)
		}
		var bare, hedged int
		_, err := fmt.Sscan(picture.String()[strings.LastIndex(picture.String(), "requests")+len("requests"):], &bare, &hedged)
		require.NoError(t, err)
		require.Equal(t, 10_000, bare)
		require.InDelta(t, 10_500, hedged, 100)
	})
}
