package retryjob_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestStatus(t *testing.T) {
	rows := []struct {
		status            retryjob.Status
		text              string
		final, replayable bool
	}{
		{retryjob.Pending, "pending", false, false},
		{retryjob.Leased, "leased", false, false},
		{retryjob.WaitingRetry, "waiting_retry", false, false},
		{retryjob.Succeeded, "succeeded", true, false},
		{retryjob.DeadLettered, "dead_letter", true, true},
		{retryjob.Expired, "expired", true, true},
		{retryjob.FailedNoRetries, "failed_no_retries", true, true},
		{retryjob.Canceled, "canceled", true, false},
	}
	var order []retryjob.Status
	for _, row := range rows {
		order = append(order, row.status)
		t.Run(row.text, func(t *testing.T) {
			require.Equal(t, row.text, row.status.String())
			require.Equal(t, row.final, row.status.Final())
			require.Equal(t, row.replayable, row.status.Replayable())
			text, err := row.status.MarshalText()
			require.NoError(t, err)
			require.Equal(t, row.text, string(text))
			var back retryjob.Status
			require.NoError(t, back.UnmarshalText(text))
			require.Equal(t, row.status, back)
			asJSON, err := json.Marshal(row.status)
			require.NoError(t, err)
			require.Equal(t, `"`+row.text+`"`, string(asJSON))
		})
	}
	t.Run("Statuses are all, in the order of a life", func(t *testing.T) { require.Equal(t, order, retryjob.Statuses()) })
	t.Run("the list is the caller's own", func(t *testing.T) {
		clear(retryjob.Statuses())
		require.Equal(t, order, retryjob.Statuses())
	})
	t.Run("the zero Status has no text and is nothing", func(t *testing.T) {
		var zero retryjob.Status
		require.Empty(t, zero.String())
		require.False(t, zero.Final())
		require.False(t, zero.Replayable())
		_, err := zero.MarshalText()
		require.EqualError(t, err, `retryjob: Status 0 is not one of pending, leased, waiting_retry, succeeded, dead_letter, expired, failed_no_retries, canceled`)
	})
	t.Run("a number beyond them is not a status", func(t *testing.T) {
		for _, unknown := range []retryjob.Status{9, 255} {
			require.Equal(t, fmt.Sprintf("Status(%d)", uint8(unknown)), unknown.String())
			require.False(t, unknown.Final())
			require.False(t, unknown.Replayable())
			_, err := unknown.MarshalText()
			require.ErrorContains(t, err, fmt.Sprintf("Status %d is not one of", uint8(unknown)))
		}
	})
	t.Run("a text that is none is refused and changes nothing", func(t *testing.T) {
		for _, text := range []string{"", "Pending", "dead", "waiting_retry ", "Status(9)"} {
			status := retryjob.Expired
			require.ErrorContains(t, status.UnmarshalText([]byte(text)), fmt.Sprintf("retryjob: Status %q is not one of", text))
			require.Equal(t, retryjob.Expired, status)
		}
	})
	t.Run("texts are those of retry where both have one", func(t *testing.T) {
		for ours, theirs := range map[retryjob.Status]retry.Status{
			retryjob.Succeeded: retry.Succeeded, retryjob.WaitingRetry: retry.WaitingRetry, retryjob.DeadLettered: retry.DeadLettered,
			retryjob.Expired: retry.Expired, retryjob.FailedNoRetries: retry.FailedNoRetries, retryjob.Canceled: retry.Canceled,
		} {
			require.Equal(t, theirs.String(), ours.String())
		}
	})
}

func TestReasons(t *testing.T) {
	var all []retry.Reason
	for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
		all = append(all, reason)
	}
	t.Run("Reasons are all, in their order, and the caller's own", func(t *testing.T) {
		require.Equal(t, all, retryjob.Reasons())
		clear(retryjob.Reasons())
		require.Equal(t, all, retryjob.Reasons())
	})
	t.Run("retry has no other reason", func(t *testing.T) {
		require.Equal(t, "Reason(10)", (retry.CallerCanceled + 1).Error())
	})
	t.Run("a record keeps their texts, and none for none", func(t *testing.T) {
		for _, reason := range append(all, 0) {
			text, err := json.Marshal(retryjob.Record{Status: retryjob.Expired, Reason: reason})
			require.NoError(t, err)
			if reason != 0 {
				require.Contains(t, string(text), `"reason":"`+reason.Error()+`"`)
			} else {
				require.NotContains(t, string(text), "reason")
			}
			back := retryjob.Record{Reason: reason}
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, reason, back.Reason)
		}
	})
	t.Run("a text that is none is refused and changes nothing", func(t *testing.T) {
		for _, text := range []string{"bored", "Reason(10)", "terminal_error "} {
			r := retryjob.Record{Reason: retry.TTLElapsed}
			require.ErrorContains(t, json.Unmarshal([]byte(`{"reason":"`+text+`"}`), &r), "retry: Reason ")
			require.Equal(t, retry.TTLElapsed, r.Reason)
		}
	})
}
