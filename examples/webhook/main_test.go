package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// want is the output with "…" for each figure that differs from run to run.
const want = `evt_1 for acme to "…/down"
  attempt 1 after …: status_503, wait …
  attempt 2 after …: status_503, wait …
  attempt 3 after …: status_503
  dead_letter (attempts_exhausted) after 3 attempts in …
evt_2 for acme to "…/down"
  attempt 1 after …: status_503, wait …
  attempt 2 after …: status_503
  dead_letter (budget_exhausted) after 2 attempts in …
evt_3 for globex to "…/down"
  attempt 1 after …: status_503, wait …
  attempt 2 after …: status_503, wait …
  attempt 3 after …: status_503
  dead_letter (attempts_exhausted) after 3 attempts in …
evt_4 for acme to "…/flaky"
  attempt 1 after …: status_503, wait …
  attempt 2 after …: status_503, wait …
  succeeded after 3 attempts in …
evt_5 for acme to "…/busy"
  attempt 1 after …: status_503
  expired (ttl_elapsed) after 1 attempt in …
evt_6 for acme to "…/gone"
  attempt 1 after …: status_410
  dead_letter (terminal_error) after 1 attempt in …
evt_7 for acme to "…/moved"
  attempt 1 after …: status_307
  dead_letter (terminal_error) after 1 attempt in …
evt_8 for mallory to "…/\r\nX-Admin: yes"
  refused: invalid_request, nothing sent
evt_9 for mallory to "http://169.254.169.254/"
  attempt 1 after …: address_blocked, nothing sent
  dead_letter (terminal_error) after 1 attempt in …
evt_10 for mallory to "http://10.0.0.1/"
  attempt 1 after …: address_blocked, nothing sent
  dead_letter (terminal_error) after 1 attempt in …
receiver: "evt_4" in attempt 1: handled
receiver: "evt_4" in attempt 2: known, not handled again
receiver: "evt_4" in attempt 3: known, not handled again
`

func TestEachDeliveryEndsInOneOutcome(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(&b))
	got := regexp.MustCompile(`(after|wait|in) \d[\d.]*[nµm]?s`).ReplaceAllString(b.String(), "$1 …")
	require.Equal(t, want, regexp.MustCompile(`http://127[\d.:]+`).ReplaceAllString(got, "…"))
}
