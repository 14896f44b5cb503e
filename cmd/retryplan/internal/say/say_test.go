package say_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func TestDuration(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {time.Hour, "1h"}, {90 * time.Minute, "1h30m"}, {10 * time.Minute, "10m"}, {time.Hour + time.Second, "1h0m1s"},
		{90 * time.Second, "1m30s"}, {250 * time.Millisecond, "250ms"}, {-time.Hour, "-1h"}, {20 * time.Hour, "20h"}, {10 * time.Second, "10s"},
	} {
		require.Equal(t, row.want, say.Duration(row.d))
	}
}

func TestTriggers(t *testing.T) {
	for _, text := range []string{"none", "stall 10s", "outage 10s", "slowdown 10s 3", "capacity_cut 10s 0", "surge 1h30m 0.5", "failing 1s 1"} {
		trigger, err := say.ParseTrigger(text)
		require.NoError(t, err)
		require.Equal(t, text, say.Trigger(trigger))
	}
	for _, text := range []string{"", "stall", "stall 1m 3", "surge 10s", "surge 10s x", "surge 3", "stall x", "blip 1m", "surge 1s 2s 3", "surge x 2"} {
		_, err := say.ParseTrigger(text)
		require.Error(t, err, text)
	}
	trigger, err := say.ParseTrigger("capacity-cut 10s 0.5")
	require.NoError(t, err)
	require.Equal(t, retryplan.Trigger{Kind: retryplan.CapacityCut, For: 10 * time.Second, Factor: .5}, trigger)
}

func TestNamesReadBack(t *testing.T) {
	for _, level := range []retryplan.Level{retryplan.Note, retryplan.Warning, retryplan.Severe} {
		got, err := say.Parse(retryplan.Note, retryplan.Severe, level.String())
		require.NoError(t, err)
		require.Equal(t, level, got)
	}
	_, err := say.Parse(retryplan.Note, retryplan.Severe, "all")
	require.EqualError(t, err, `"all" is not one of note, warning, severe`)
	require.Equal(t, "succeeded", say.Reason(0))
	require.Equal(t, "ttl_elapsed", say.Reason(retry.TTLElapsed))
}

// FuzzOneLine holds that no text, of a policy's name or an error, reaches a terminal as anything but one line of text.
func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\nb\r\n\tc:\nd", "\x1b]0;title\a", "\u009b2J", "\x9b2J", "\u202eabc", "a\u2028b", "\x00", "日本"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := say.OneLine(text)
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", got)
		require.Equal(t, got, say.OneLine(got))
	})
}

// FuzzParseTrigger holds that a trigger that was read is written and read again as the same.
func FuzzParseTrigger(f *testing.F) {
	for _, seed := range []string{"stall 10s", "surge 1h 3", "failing 1s 1e-3", "surge 1s NaN", "slowdown -1ns Inf", "none", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trigger, err := say.ParseTrigger(text)
		if err != nil || math.IsNaN(trigger.Factor) {
			return
		}
		again, err := say.ParseTrigger(say.Trigger(trigger))
		require.NoError(t, err)
		require.Equal(t, trigger, again)
	})
}
