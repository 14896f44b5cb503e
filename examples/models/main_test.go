package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	const want = `
the rate limit is used up        status_429, ok              Hello, world
it is, until a given time        status_429, ok              Hello, world
the service is overloaded        status_529, status_529, ok  Hello, world
the stream begins with an error  not_accepted, ok            Hello, world
the stream breaks off before it  not_accepted, ok            Hello, world
the stream breaks off within     ok                          Hello unexpected EOF
the request is wrong             ok                          retryhttp: 400 Bad Request
the service wants no retry       status_500: terminal_error  retryhttp: 500 Internal Server Error (not repeated: do_not_retry)
the wait would be an hour        status_429: hint_too_long   retryhttp: 429 Too Many Requests (models: gave up after 1 attempt)
`
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		waited := map[string]time.Duration{}
		for _, call := range calls {
			began := time.Now()
			require.NoError(t, call.show(t.Context(), &out))
			waited[call.name] = time.Since(began)
		}
		require.Equal(t, strings.TrimPrefix(want, "\n"), out.String())
		require.GreaterOrEqual(t, waited["the rate limit is used up"], 500*time.Millisecond)
		require.GreaterOrEqual(t, waited["it is, until a given time"], 1200*time.Millisecond)
		require.Equal(t, 100*time.Millisecond, waited["the wait would be an hour"])
	})
}
