package toxics_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// origin is a server of one file.
type origin struct {
	address string
	path    string               // of the file
	put     func(content []byte) // replaces it
}

// serveContent is http.ServeContent of a file on disk, which sends no ETag.
func serveContent(t *testing.T) origin {
	dir := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return origin{server.Listener.Addr().String(), "/file", replaces(t, filepath.Join(dir, "file"))}
}

// replaces returns a function that replaces a file by another one of another age, as a deployment does.
func replaces(t *testing.T, path string) func([]byte) {
	changed := time.Now().Add(-48 * time.Hour)
	return func(content []byte) {
		changed = changed.Add(time.Hour)
		require.NoError(t, os.WriteFile(path+".new", content, 0o644))
		require.NoError(t, os.Chtimes(path+".new", changed, changed))
		require.NoError(t, os.Rename(path+".new", path))
	}
}

// nginx is that of the system, in a process of the test's own.
func nginx(t *testing.T) origin {
	program := "nginx"
	if _, err := exec.LookPath(program); err != nil {
		program = "/usr/sbin/nginx"
	}
	if _, err := exec.LookPath(program); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		t.Skip("nginx is not here")
	}
	dir := t.TempDir()
	free, err := net.Listen("tcp", net.JoinHostPort(ownAddress(), "0"))
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	var config strings.Builder
	fmt.Fprintf(&config, "daemon off; master_process off; pid %[1]s/pid; error_log stderr; events {}\nhttp { access_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&config, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	fmt.Fprintf(&config, "server { listen %s; root %s; } }\n", address, dir)
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(path, []byte(config.String()), 0o600))
	var said bytes.Buffer
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", path)
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	err = retry.Do(t.Context(), retry.Policy{MaxAttempts: 200, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 20 * time.Millisecond}},
		func(context.Context) error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				err = conn.Close()
			}
			return err
		})
	require.NoError(t, err)
	return origin{address, "/file", replaces(t, filepath.Join(dir, "file"))}
}

// fakeS3 is an S3-compatible server. It knows Range, but not If-Range: of a file that has changed it sends the rest.
func fakeS3(t *testing.T) origin {
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	put := func(path string, content []byte) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+path, bytes.NewReader(content))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	put("/bucket", nil)
	return origin{server.Listener.Addr().String(), "/bucket/file", func(content []byte) { put("/bucket/file", content) }}
}

// cutAfter returns the URL of o's file through a proxy that cuts each connection after so many bytes.
func cutAfter(t *testing.T, o origin, n int) string {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, t.Name(), net.JoinHostPort(ownAddress(), "0"), o.address)
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	_, err := proxy.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"type": "limit_data", "stream": "downstream", "attributes": {"bytes": %d}}`, n)))
	require.NoError(t, err)
	return "http://" + proxy.Listen + o.path
}

const (
	whole = 1 << 20
	piece = 150_000 // of each connection
)

func TestDownloads(t *testing.T) {
	for name, start := range map[string]func(*testing.T) origin{"http.ServeContent": serveContent, "nginx": nginx, "S3": fakeS3} {
		t.Run(name, func(t *testing.T) {
			first, second := make([]byte, whole), make([]byte, whole)
			_, _ = rand.Read(first)
			_, _ = rand.Read(second)
			o := start(t)
			o.put(first)
			url := cutAfter(t, o, piece)
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			asked := 0
			client := &http.Client{Transport: &retryhttp.Transport{Resume: true, Policy: retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0}}},
				Base: roundTripper(func(req *http.Request) (*http.Response, error) { asked++; return base.RoundTrip(req) })}}

			resp, err := client.Get(url)
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.True(t, bytes.Equal(first, got))
			require.Greater(t, asked, whole/piece)

			// The file changes between two parts.
			resp, err = client.Get(url)
			require.NoError(t, err)
			got = make([]byte, piece/2)
			_, err = io.ReadFull(resp.Body, got)
			require.NoError(t, err)
			o.put(second)
			more, err := io.ReadAll(resp.Body)
			require.NoError(t, resp.Body.Close())
			got = append(got, more...)
			require.Equal(t, retryhttp.ContentChanged, retryhttp.ReasonOf(err), err)
			require.Less(t, len(got), whole)
			require.True(t, bytes.Equal(first[:len(got)], got), "nothing of the second")
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
