package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(workerVariable); path != "" {
		if err := work(context.Background(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const want = `Four events are enqueued, and a worker starts.
  evt_1  /orders  succeeded: 1 ok
  evt_2  /flaky   succeeded: 1 status_503, 2 status_503, 3 ok
  evt_3  /gone    dead_letter (terminal_error): 1 status_410
  evt_4  /down    dead_letter (attempts_exhausted): 1 status_503, 2 status_503, 3 status_503
The worker is killed while it waits for /slow to answer. One more event is enqueued while nobody works.
  evt_5  /slow    leased: 1 under way
  evt_6  /orders  pending
A worker starts again. In time River notices which delivery was lost.
  evt_6  /orders  succeeded: 1 ok
  evt_5  /slow    succeeded: 1 lost, 2 ok
The dead letters:
  evt_4  /down    dead_letter (attempts_exhausted): 1 status_503, 2 status_503, 3 status_503
  evt_3  /gone    dead_letter (terminal_error): 1 status_410
/down is mended, and its event replayed.
  evt_4  /down    succeeded: 1 ok

EVENT  TO       STATUS       REASON          REPLAYS  ATTEMPTS  REQUESTS  HANDLED
evt_1  /orders  succeeded                    0        1         1         1
evt_2  /flaky   succeeded                    0        3         3         1
evt_3  /gone    dead_letter  terminal_error  0        1         1         0
evt_4  /down    succeeded                    1        1         4         1
evt_5  /slow    succeeded                    0        2         2         1
evt_6  /orders  succeeded                    0        1         1         1
`

func TestNoEventIsLostWithAWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("River takes half a minute to notice that a worker is gone")
	}
	var b bytes.Buffer
	err := run(t.Context(), &b)
	require.NoError(t, err, b.String())
	require.Equal(t, want, b.String())
}
