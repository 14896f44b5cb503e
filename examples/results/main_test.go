package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestAnAnswerIsCheckedBeforeItIsAResult(t *testing.T) {
	const want = `
hourly   queued, wait 100ms; queued, wait 200ms; done, 12 orders
daily    connection reset, wait 0s; connection reset, wait 0s; done, 288 orders
weekly   busy, wait 100ms; queued, wait 200ms; queued, wait 400ms; done, 2016 orders
monthly  busy, wait 100ms; busy, wait 200ms; busy, attempts_exhausted
yearly   queued, wait 100ms; the report failed, terminal_error
`
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		for _, call := range calls {
			require.NoError(t, call.show(t.Context(), &out))
		}
		require.Equal(t, strings.TrimPrefix(want, "\n"), out.String())
	})
}
