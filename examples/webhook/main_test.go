package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

const want = `/down                    evt_1  dead_letter (attempts_exhausted) after 3 of 3 attempts: status_503
/down                    evt_2  dead_letter (budget_exhausted) after 2 of 3 attempts: status_503
/down                    evt_3  dead_letter (budget_exhausted) after 1 of 3 attempts: status_503
/flaky                   evt_4  succeeded after 3 of 3 attempts
/busy                    evt_5  expired (ttl_elapsed) after 1 of 3 attempts: status_503
/gone                    evt_6  dead_letter (terminal_error) after 1 of 3 attempts: status_410
/moved                   evt_7  dead_letter (terminal_error) after 1 of 3 attempts: status_307
http://169.254.169.254/  evt_8  dead_letter (terminal_error) after 1 of 3 attempts: address_blocked, nothing sent
http://10.0.0.1/         evt_9  dead_letter (terminal_error) after 1 of 3 attempts: address_blocked, nothing sent
receiver: "evt_4" in attempt 1: handled
receiver: "evt_4" in attempt 2: known, not handled again
receiver: "evt_4" in attempt 3: known, not handled again
`

func TestEachDeliveryEndsInOneOutcome(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(&b))
	require.Equal(t, want, b.String())
}
