package ssrf_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// guardedClient returns a client on transport, whose idle connections end with the test.
func guardedClient(t *testing.T, transport *http.Transport) *http.Client {
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

var allowLoopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func TestGuardJudgesTheHopsOfARedirect(t *testing.T) {
	listener := listenIPv4(t)
	server := httptest.NewUnstartedServer(http.RedirectHandler("http://127.0.0.2:80/latest/meta-data/", http.StatusFound))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()

	_, err := guardedClient(t, ssrf.Guard{Allow: allowLoopback}.Transport()).Get(server.URL)
	var blocked *ssrf.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, &ssrf.BlockedError{Address: "127.0.0.2:80", Rule: "loopback"}, blocked)
}

// listenIPv4 listens on 127.0.0.1 until the test ends.
func listenIPv4(t *testing.T) *net.TCPListener {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Skipf("no IPv4: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestGuardStopsTheSpellingsOfLoopback(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "localtest.test.",
		"2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1",
		"0", "0.0.0.0", "127.0.0.1.", "127.0.0.1.nip.test", "①②⑦.⓪.⓪.①", "127。0。0。1",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0.0.0.0]",
	} {
		t.Run(host, func(t *testing.T) {
			listener := listenIPv4(t)
			// The worst resolver there is: every name is loopback, numbers in any notation too.
			resolver := answering([]string{"127.0.0.1"})
			transport := ssrf.Guard{}.Transport()
			transport.DialContext = (&net.Dialer{Control: ssrf.Guard{}.Control, Resolver: resolver}).DialContext

			_, err := guardedClient(t, transport).Get(fmt.Sprintf("http://%s:%d/", host, listener.Addr().(*net.TCPAddr).Port))
			var dnsError *net.DNSError
			if !errors.As(err, &dnsError) { // Go's resolver does not look up a name that is all digits
				require.ErrorIs(t, err, ssrf.ErrBlocked)
			}
			requireUntouched(t, listener)
		})
	}
}

func TestGuardStopsTheSpellingsOfLoopbackByIPv6(t *testing.T) {
	for _, host := range []string{"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::1%25lo]"} {
		t.Run(host, func(t *testing.T) {
			listener, err := net.Listen("tcp6", "[::1]:0")
			if err != nil {
				t.Skipf("no IPv6: %v", err)
			}
			defer listener.Close()
			_, err = guardedClient(t, ssrf.Guard{}.Transport()).Get(fmt.Sprintf("http://%s:%d/", host, listener.Addr().(*net.TCPAddr).Port))
			require.ErrorIs(t, err, ssrf.ErrBlocked)
			requireUntouched(t, listener.(*net.TCPListener))
		})
	}
}

// requireUntouched checks that no client connected to listener. The queue of connections is first in, first out, so the
// first that listener accepts must be the one made here.
func requireUntouched(t *testing.T, listener *net.TCPListener) {
	ours, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer ours.Close()
	accepted, err := listener.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	require.Equal(t, ours.LocalAddr().String(), accepted.RemoteAddr().String(), "somebody connected before")
}

func TestGuardStopsRebindingBetweenCheckAndDial(t *testing.T) {
	for _, row := range []struct {
		name    string
		control bool
		reached bool
	}{
		{name: "checking the name beforehand does not help", control: false, reached: true},
		{name: "the guard in the dialer does", control: true, reached: false},
	} {
		t.Run(row.name, func(t *testing.T) {
			listener := listenIPv4(t)
			resolver := answering([]string{"8.8.8.8"}, []string{"127.0.0.1"})
			guard := ssrf.Guard{}
			dialer := &net.Dialer{Resolver: resolver}
			if row.control {
				dialer.Control = guard.Control
			}
			transport := guard.Transport()
			transport.DialContext = dialer.DialContext

			addrs, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.test.")
			require.NoError(t, err)
			require.Len(t, addrs, 1)
			require.NoError(t, guard.Check(addrs[0]), "the first answer is public")

			if row.reached {
				conn, err := transport.DialContext(t.Context(), "tcp", fmt.Sprintf("rebind.test.:%d", listener.Addr().(*net.TCPAddr).Port))
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				return
			}
			_, err = guardedClient(t, transport).Get(fmt.Sprintf("http://rebind.test.:%d/", listener.Addr().(*net.TCPAddr).Port))
			var blocked *ssrf.BlockedError
			require.ErrorAs(t, err, &blocked)
			require.Equal(t, &ssrf.BlockedError{Address: listener.Addr().String(), Rule: "loopback"}, blocked)
			requireUntouched(t, listener)
		})
	}
}

func TestGuardJudgesEveryAddressOfAName(t *testing.T) {
	for _, row := range []struct {
		name    string
		answers []string
		allow   []netip.Prefix
		reached bool
	}{
		{name: "all of them private", answers: []string{"10.0.0.1", "192.168.0.1", "127.0.0.1", "169.254.169.254"}},
		{name: "one of them allowed", answers: []string{"10.0.0.1", "192.168.0.1", "127.0.0.1"}, allow: allowLoopback, reached: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			listener := listenIPv4(t)
			guard := ssrf.Guard{Allow: row.allow}
			dialer := &net.Dialer{Control: guard.Control, Resolver: answering(row.answers)}
			conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("many.test.:%d", listener.Addr().(*net.TCPAddr).Port))
			if row.reached {
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				return
			}
			require.ErrorIs(t, err, ssrf.ErrBlocked)
			requireUntouched(t, listener)
		})
	}
}

func TestGuardTransportRetriesANameOfWhichOneAddressIsAllowed(t *testing.T) {
	saved := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = saved })
	one := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	for _, row := range []struct {
		name    string
		answers []string
		want    []string
		blocked bool
	}{
		{"a blocked address before one that is down", []string{"127.0.0.2", "127.0.0.1"}, []string{"dial_failed", "dial_failed"}, false},
		{"one that is down before a blocked address", []string{"127.0.0.1", "127.0.0.2"}, []string{"conn_refused", "conn_refused"}, false},
		{"one that is down, alone", []string{"127.0.0.1"}, []string{"conn_refused", "conn_refused"}, false},
		{"blocked addresses alone are not repeated", []string{"127.0.0.2", "127.0.0.3"}, []string{"address_blocked"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			net.DefaultResolver = answering(row.answers)
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
			client := &http.Client{Transport: &retryhttp.Transport{Base: ssrf.Guard{Allow: one}.Transport(), Policy: p}}
			_, err := client.Post("http://some.test.:1", "", nil) // no server listens on port 1
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			var reasons []string
			for _, attempt := range run.History {
				reasons = append(reasons, string(retryhttp.ReasonOf(attempt.Err)))
			}
			require.Equal(t, row.want, reasons)
			require.Equal(t, row.blocked, errors.Is(err, ssrf.ErrBlocked))
		})
	}
}

// answering returns a resolver that asks a DNS server in this process. It answers the n-th question for IPv4 addresses
// with the n-th list, from then on with the last, and says of all else that there is none.
func answering(lists ...[]string) *net.Resolver {
	var asked atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // no PacketConn, hence DNS over TCP: RFC 1035 section 4.2.2
		go func() {
			defer server.Close()
			for {
				query, err := readDNS(server)
				if err != nil {
					return // the resolver closed its end
				}
				name := query[12:]
				name = name[:len(name)-len(afterName(name))]
				kind := binary.BigEndian.Uint16(query[12+len(name):])
				var addrs []string
				if kind == 1 { // A, RFC 1035 section 3.2.2
					addrs = lists[min(int(asked.Add(1)), len(lists))-1]
				}
				if err := writeDNS(server, query[:2], query[12:12+len(name)+4], addrs); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

func readDNS(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, err
	}
	if len(message) < 12+1+4 {
		return nil, errors.New("query without a question")
	}
	return message, nil
}

// afterName returns what follows the labels at the start of b.
func afterName(b []byte) []byte {
	for b[0] != 0 {
		b = b[1+b[0]:]
	}
	return b[1:]
}

func writeDNS(w io.Writer, id, question []byte, addrs []string) error {
	message := append([]byte{}, id...)
	message = append(message, 0x85, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0) // authoritative response, recursion available
	message = append(message, question...)
	for _, addr := range addrs {
		message = append(message, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name in the question, A, IN, TTL 0
		message = append(message, netip.MustParseAddr(addr).AsSlice()...)
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}

func TestGuardTransportReachesWhatIsAllowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "reached")
	}))
	defer server.Close()
	if !netip.MustParseAddrPort(server.Listener.Addr().String()).Addr().Is4() {
		t.Skip("no IPv4")
	}
	allow := append([]netip.Prefix(nil), allowLoopback...)
	transport := ssrf.Guard{Allow: allow}.Transport()
	allow[0] = netip.Prefix{} // the transport has its own list

	resp, err := guardedClient(t, transport).Get(server.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "reached", string(body))
}

func BenchmarkGuardCheck(b *testing.B) {
	for _, text := range []string{"8.8.8.8", "2606:4700:4700::1111", "64:ff9b::8.8.8.8"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			addr := netip.MustParseAddr(text)
			for b.Loop() {
				_ = ssrf.Guard{}.Check(addr)
			}
		})
	}
}
