package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrydebug"
)

func TestThePageIsServed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- servePage(ctx, "localhost:0", write) }()
	address, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	var s retrydebug.Snapshot
	for tick := time.Tick(10 * time.Millisecond); len(s.Policies) == 0 || s.Policies[0].Total.Runs < 2; <-tick {
		resp, err := http.Get(strings.TrimSpace(address) + "?format=json")
		require.NoError(t, err)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&s))
		require.NoError(t, resp.Body.Close())
	}
	require.Equal(t, "catalog", s.Policies[0].Name)
	require.Equal(t, "catalog", s.Budgets[0].Name)
	stop()
	require.NoError(t, <-ended)
}
