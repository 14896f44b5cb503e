package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestProgressBeginsTheCountAnew(t *testing.T) {
	const want = `
Without a mark every broken connection counts:
  0s     attempt 1, feed   4 of 12 lines, connection reset
  100ms  attempt 2, feed   7 of 12 lines, connection reset
  800ms  attempt 3, copy  12 of 12 lines, complete
With Progressed the count begins anew:
  0s     attempt 1, feed   4 of 12 lines, connection reset
  100ms  attempt 2, feed   7 of 12 lines, connection reset
  200ms  attempt 3, feed   9 of 12 lines, connection reset
  300ms  attempt 4, feed  12 of 12 lines, complete
The last attempt reads the copy:
  0s     attempt 1, feed   4 of 12 lines, connection reset
  100ms  attempt 2, feed   7 of 12 lines, connection reset
  200ms  attempt 3, feed   7 of 12 lines, connection refused
  900ms  attempt 4, copy  12 of 12 lines, complete
`
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		for _, c := range cases {
			require.NoError(t, c.run(t.Context(), &out))
		}
		require.Equal(t, strings.TrimPrefix(want, "\n"), out.String())
	})
}
