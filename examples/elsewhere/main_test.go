package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestWhatFailsGoesToAnotherReplica(t *testing.T) {
	const want = `
All replicas are well:
  0s     eu.example  all        200 OK
One is down, one is busy:
  0s     eu.example  all        connection refused
  50ms   us.example  all        503 Service Unavailable
  150ms  ap.example  all        200 OK
One is slow:
  100ms  us.example  all        200 OK
  0s     eu.example  all        canceled
One breaks off:
  0s     eu.example  all        200 OK, and breaks off
  50ms   eu.example  bytes=20-  connection refused
  150ms  us.example  bytes=20-  206 Partial Content
`
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		for _, day := range days {
			require.NoError(t, day.read(t.Context(), &out))
		}
		require.Equal(t, strings.TrimPrefix(want, "\n"), out.String())
	})
}
