package cli_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
)

// served runs serve while do uses the page at the printed address.
func served(t *testing.T, f *fake, do func(address string), args ...string) ran {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, line := io.Pipe()
	var stderr strings.Builder
	exit := make(chan int, 1)
	go func() {
		exit <- cli.Run(ctx, cli.Options{
			Open: func(context.Context, string) (cli.Store, error) { return f, nil }, Now: func() time.Time { return now },
			Getenv: func(string) string { return "postgres://me:hush@db.example/jobs" },
		}, append([]string{"serve"}, args...), line, &stderr)
		line.Close()
	}()
	buffer := make([]byte, 1000)
	n, err := out.Read(buffer)
	require.NoError(t, err)
	do(strings.TrimSpace(string(buffer[:n])))
	cancel()
	return ran{Exit: <-exit, Err: stderr.String()}
}

func fetch(t *testing.T, address, host string) (int, string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.Host = host
	w, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w.StatusCode, string(body)
}

func TestServeServesThePage(t *testing.T) {
	f := newFake(jobs()...)
	got := served(t, f, func(address string) {
		require.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*/$`, address)
		status, body := fetch(t, address, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "dead-1")
		require.Contains(t, body, "postgres://me@db.example/jobs")
		status, _ = fetch(t, address, "evil.example")
		require.Equal(t, http.StatusForbidden, status)
	})
	require.Equal(t, ran{}, got, "an interrupt is how it ends")
	require.Equal(t, 1, f.closed)
}

func TestServeAnswersToTheHostsThatAreGiven(t *testing.T) {
	got := served(t, newFake(jobs()...), func(address string) {
		require.Regexp(t, `^\{"url":"http://.*:[1-9]\d*/"\}$`, address)
		port := address[strings.LastIndex(address, ":")+1 : len(address)-3]
		status, _ := fetch(t, "http://127.0.0.1:"+port+"/", "jobs.example.org")
		require.Equal(t, http.StatusOK, status)
	}, "--addr", ":0", "--host", "jobs.example.org", "--json")
	require.Equal(t, ran{}, got)
	require.Equal(t, ran{cli.Failed, "", "retryjobs: jobsui: Options.Hosts[0] \"a:80\" is not a host name without a port\n"}, run(t, newFake(), "serve", "--host", "a:80"))
}

var errWithPassword = errors.New("no route to postgres://me:hush@db.example/jobs")

func TestThePageShowsNoPassword(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errWithPassword
	served(t, f, func(address string) {
		_, body := fetch(t, address, "")
		require.Contains(t, body, "The jobs could not be listed: no route to postgres://me:xxxxx@db.example/jobs.")
		require.NotContains(t, body, "hush")
	})
}
