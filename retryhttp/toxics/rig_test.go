package toxics_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // the bandwidth toxic logs past its proxy's logger
	// The tests wait more than they compute, so there may be more of them at a time than there are processors.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// forever is longer than any test: what takes so long does not happen.
const forever = time.Hour

// rig is a server behind a proxy, with a transport to it.
type rig struct {
	proxy  *toxiproxy.Proxy
	base   *http.Transport
	hits   atomic.Int32 // requests that reached the handler
	server tally        // the server's connections
	client tally        // the transport's
}

// tally counts connections.
type tally struct{ opened, closed atomic.Int32 }

// newRig starts a server and a proxy in front of it. The test fails, or does not end, if it leaves behind a connection
// on either side or a goroutine that the client has started.
func newRig(t *testing.T, handler http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.hits.Add(1)
		handler(w, req)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			r.server.opened.Add(1)
		case http.StateClosed:
			r.server.closed.Add(1)
		}
	}
	server.Start()

	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	r.proxy = toxiproxy.NewProxy(api, t.Name(), net.JoinHostPort(ownAddress(), "0"), server.Listener.Addr().String())
	require.NoError(t, r.proxy.Start())

	r.base = &http.Transport{DialContext: r.dial}
	// What this goroutine starts from here on has its label.
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("rig", t.Name())))
	t.Cleanup(func() {
		pprof.SetGoroutineLabels(context.Background())
		r.mend()
		r.proxy.Stop()
		r.awaitGoroutines(t)
		server.Close() // waits for its connections to be closed
		require.Equal(t, r.server.opened.Load(), r.server.closed.Load())
		require.Equal(t, r.client.opened.Load(), r.client.closed.Load())
	})
	return r
}

// ownAddress returns a loopback address of this process alone, if the system has more than one: the port of a proxy
// that is down must not go to a server of another process.
func ownAddress() string {
	pid := os.Getpid()
	own := net.IPv4(127, 128|byte(pid>>16), byte(pid>>8), byte(pid)).String()
	listener, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = listener.Close()
	return own
}

// dial counts the connection until it is closed.
func (r *rig) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r.client.opened.Add(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { r.client.closed.Add(1) })}, nil
}

// countedConn reports its first Close.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// profiling is held while goroutines are looked at, which stops all of them.
var profiling sync.Mutex

// awaitGoroutines waits until nothing is left of what the test has started through the transport. There is no limit to
// that: a goroutine that stays is shown by the dump of go test's own timeout.
func (r *rig) awaitGoroutines(t *testing.T) {
	profiling.Lock()
	defer profiling.Unlock()
	label := fmt.Sprintf("%q:%q", "rig", t.Name())
	for {
		r.base.CloseIdleConnections() // also those of dials that no caller waits for any longer
		var dump bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&dump, 1))
		if !strings.Contains(dump.String(), label) {
			return
		}
		runtime.Gosched()
	}
}

// add puts a toxic on the proxy's connections, from now on. attributes is JSON.
func (r *rig) add(t *testing.T, tox toxic) {
	t.Helper()
	if tox.stream == "" {
		tox.stream = "downstream"
	}
	_, err := r.proxy.Toxics.AddToxicJson(strings.NewReader(
		fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": %s}`, tox.kind, tox.stream, tox.attributes)))
	require.NoError(t, err)
}

// toxic is what is wrong with the connections.
type toxic struct {
	kind       string
	stream     string // "upstream" spoils requests; empty means "downstream", which spoils responses
	attributes string // JSON
}

// ms returns the attribute with the given name and d in milliseconds.
func ms(name string, d time.Duration) string {
	return fmt.Sprintf(`{%q: %d}`, name, d.Milliseconds())
}

// mend takes all toxics away.
func (r *rig) mend() { r.proxy.Toxics.ResetToxics(context.Background()) }

// retrying returns a client of the rig with t's settings, which retries without waits, and what will be its last run.
// afterFailure is called after each attempt that failed, with its number, before the next one; nil means nothing.
func (r *rig) retrying(t *retryhttp.Transport, afterFailure func(attempt int)) (*http.Client, *run) {
	last := new(run)
	t.Base = r.base
	t.Policy.Backoff = retry.Backoff{Delays: []time.Duration{0}}
	t.Policy.Observe = func(_ context.Context, e retry.Event) {
		switch {
		case e.Outcome != nil:
			*last = runOf(e.Outcome)
		case afterFailure != nil:
			afterFailure(e.Attempt.Number)
		}
	}
	return &http.Client{Transport: t}, last
}

// run is an Outcome as the tests compare it.
type run struct {
	Decision retry.Decision
	Attempts int
	Reasons  []retryhttp.Reason // of the attempts that failed
}

func runOf(o *retry.Outcome) run {
	r := run{Decision: retry.Decision{Status: o.Status, Reason: o.Reason}, Attempts: o.Attempts}
	for _, failed := range o.History {
		r.Reasons = append(r.Reasons, retryhttp.ReasonOf(failed.Err))
	}
	return r
}

// url is the server's address, through the proxy.
func (r *rig) url() string { return "http://" + r.proxy.Listen + "/" }

// send makes a request and reads its response to the end.
func (r *rig) send(t *testing.T, client *http.Client, method, body string, header http.Header) (string, error) {
	t.Helper()
	// Not with t.Context, whose end would hide what is left open.
	req, err := http.NewRequestWithContext(context.Background(), method, r.url(), strings.NewReader(body))
	require.NoError(t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	got, err := io.ReadAll(resp.Body)
	return string(got), err
}

// get is send for a GET.
func (r *rig) get(t *testing.T, client *http.Client) (string, error) {
	t.Helper()
	return r.send(t, client, http.MethodGet, "", nil)
}

// hello answers at once, in one segment.
func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
