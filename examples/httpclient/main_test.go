package main

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// want is the output with "…" for each figure that differs from run to run.
const want = `GET  /reset    resets the connection once
  attempt 1  conn_reset       wait …
  succeeded after 2 attempts in …
  200 OK: well again

GET  /flaky    answers 503 twice, with Retry-After
  attempt 1  status_503       wait …
  attempt 2  status_503       wait …
  succeeded after 3 attempts in …
  200 OK: well again

GET  /slow     hangs once
  attempt 1  attempt_timeout  wait …
  succeeded after 2 attempts in …
  200 OK: well again

GET  /missing  answers 404
  succeeded after 1 attempt in …
  404 Not Found: 404 page not found

GET  /busy     answers 429, with a Retry-After of an hour
  attempt 1  status_429       give up
  expired (hint_too_long) after 1 attempt in …
  429 Too Many Requests: come back in an hour

POST /orders   places the order, then answers 503
  attempt 1  status_503       give up: not_idempotent
  dead_letter (terminal_error) after 1 attempt in …
  503 Service Unavailable: placed, but the till has crashed

POST /orders   the same, with an Idempotency-Key
  attempt 1  status_503       wait …
  succeeded after 2 attempts in …
  200 OK: teacup: placed before under this key, not placed again

`

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(&b))
	require.Equal(t, want, regexp.MustCompile(`(wait|in) \d\S*`).ReplaceAllString(b.String(), "$1 …"))
}

func TestRetryAfterIsTheLeastWait(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(&b))
	waits := regexp.MustCompile(`status_503 +wait (\S+)`).FindAllStringSubmatch(b.String(), 2) // of /flaky
	require.Len(t, waits, 2)
	for i, jitter := range []time.Duration{20 * time.Millisecond, 40 * time.Millisecond} {
		wait, err := time.ParseDuration(waits[i][1])
		require.NoError(t, err)
		require.GreaterOrEqual(t, wait, 50*time.Millisecond)
		require.LessOrEqual(t, wait, 50*time.Millisecond+jitter)
	}
}
