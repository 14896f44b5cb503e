package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheTableIsThatOfThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		require.NoError(t, table(&b))
		t.Log("\n" + b.String())
		page, err := os.ReadFile("../../docs/layers.md")
		require.NoError(t, err)
		require.True(t, strings.Contains(string(page), b.String()), b.String())
	})
}

// How much passing a deadline on helps depends on the timeouts alone: the more carefully they are graded, the less.
func TestWhatTimeoutsLeaveOfAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			timeouts [3]time.Duration
			attempts int
			wait     time.Duration
			dropped  int
			passedOn int
		}{
			{[3]time.Duration{1000 * ms, 1000 * ms, 1000 * ms}, 3, ms, 27, 3},
			{[3]time.Duration{10000 * ms, 3200 * ms, 1000 * ms}, 3, ms, 27, 27},
			{[3]time.Duration{2500 * ms, 1000 * ms, 300 * ms}, 3, 50 * ms, 27, 24},
			{[3]time.Duration{2000 * ms, 1000 * ms, 400 * ms}, 3, 50 * ms, 27, 18},
			{[3]time.Duration{1500 * ms, 1000 * ms, 450 * ms}, 4, 100 * ms, 64, 12},
		} {
			for passOn, want := range map[bool]int{false: row.dropped, true: row.passedOn} {
				r, s := remedy{passOn: passOn}, scene{hang: true, timeouts: row.timeouts, attempts: row.attempts, wait: row.wait}
				got, err := count(r, s)
				require.NoError(t, err)
				require.Equal(t, want, got, "%v passed on: %t", row.timeouts, passOn)
				says, err := planned(r, s)
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(want), says)
			}
		}
	})
}

// A proxy that goes on hides that the client has gone; the time that the client has left passes through it.
func TestBehindAProxyOnlyTheTimeIsPassedOn(t *testing.T) {
	for _, row := range []struct {
		r    remedy
		want int
	}{{remedy{passOn: true}, 4}, {remedy{passOn: true, proxy: true}, 16}, {remedy{passOn: true, proxy: true, time: true}, 4}} {
		synctest.Test(t, func(t *testing.T) {
			got, err := count(row.r, scenes[1])
			require.NoError(t, err)
			require.Equal(t, row.want, got, "%+v", row.r)
		})
	}
}
