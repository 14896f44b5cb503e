package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheRestOfABatchIsRepeated(t *testing.T) {
	const want = `
0s      send a b c d e f   throttled d e, refused f
300ms   send d e           connection reset
500ms   send d e           took all
        not sent: f (too long), which must be changed
500ms   send g h i j k l   throttled h
600ms   send h             throttled h
800ms   send h             throttled h
        not sent: h (throttled), which can be sent later
`
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out))
		require.Equal(t, strings.TrimPrefix(want, "\n"), out.String())
	})
}
