package ssrf_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
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

func requireBlocked(t *testing.T, err error, address string) {
	t.Helper()
	var blocked *ssrf.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Equal(t, &ssrf.BlockedError{Address: address, Rule: "loopback"}, blocked)
}

func TestGuardTransportReachesWhatIsAllowedAndJudgesTheHopsOfARedirect(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://127.0.0.2:80/latest/meta-data/", http.StatusFound))
	defer server.Close()
	if !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
		t.Skip("no IPv4")
	}
	allow := append([]netip.Prefix(nil), allowLoopback...)
	transport := ssrf.Guard{Allow: allow}.Transport()
	allow[0] = netip.Prefix{} // the transport has its own list

	_, err := guardedClient(t, transport).Get(server.URL)
	requireBlocked(t, err, "127.0.0.2:80")
}

func TestGuardStopsTheSpellingsOfLoopback(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "localtest.test.",
		"2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1",
		"0", "0.0.0.0", "127.0.0.1.", "127.0.0.1.nip.test", "①②⑦.⓪.⓪.①", "127。0。0。1",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0.0.0.0]",
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::1%25lo]",
	} {
		t.Run(host, func(t *testing.T) {
			transport := ssrf.Guard{}.Transport()
			// The worst resolver there is: every name is loopback, numbers in any notation too.
			transport.DialContext = (&net.Dialer{Control: ssrf.Guard{}.Control, Resolver: answering([]string{"127.0.0.1"})}).DialContext
			_, err := guardedClient(t, transport).Get("http://" + host + ":1")
			var unknown *net.DNSError
			var unsuitable *net.AddrError
			switch {
			case errors.As(err, &unknown): // Go's resolver does not look up a name that is all digits
			case errors.As(err, &unsuitable), errors.Is(err, syscall.EAFNOSUPPORT):
				t.Skip("no IPv6")
			default:
				require.ErrorIs(t, err, ssrf.ErrBlocked)
			}
		})
	}
}

func TestGuardStopsRebindingBetweenCheckAndDial(t *testing.T) {
	for name, control := range map[string]bool{
		"checking the name beforehand does not help": false,
		"the guard in the dialer does":               true,
	} {
		t.Run(name, func(t *testing.T) {
			guard := ssrf.Guard{}
			dialer := &net.Dialer{Resolver: answering([]string{"8.8.8.8"}, []string{"127.0.0.1"})}
			if control {
				dialer.Control = guard.Control
			}
			addrs, err := dialer.Resolver.LookupNetIP(t.Context(), "ip4", "rebind.test.")
			require.NoError(t, err)
			require.Len(t, addrs, 1)
			require.NoError(t, guard.Check(addrs[0]), "the first answer is public")

			_, err = dialer.DialContext(t.Context(), "tcp", "rebind.test.:1")
			if control {
				requireBlocked(t, err, "127.0.0.1:1")
			} else {
				require.ErrorContains(t, err, "127.0.0.1:1: ", "it has dialed the inner host, on which no server listens")
				require.NotErrorIs(t, err, ssrf.ErrBlocked)
			}
		})
	}
}

// An error that matched ErrBlocked would not be repeated, although the other address may be reached later.
func TestGuardTransportRetriesANameOfWhichOneAddressIsAllowed(t *testing.T) {
	saved := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = saved })
	for _, row := range []struct {
		name    string
		answers []string
		want    []string
		blocked bool
		text    string
	}{
		{"a blocked address before one that is down", []string{"127.0.0.2", "127.0.0.1"}, []string{"dial_failed", "dial_failed"}, false,
			`ssrf: address is blocked: loopback "127.0.0.2:1" (no other address can be reached)`},
		{"one that is down before a blocked address", []string{"127.0.0.1", "127.0.0.2"}, []string{"conn_refused", "conn_refused"}, false, "refused"},
		{"one that is down, alone", []string{"127.0.0.1"}, []string{"conn_refused", "conn_refused"}, false, "refused"},
		{"blocked addresses alone are not repeated", []string{"127.0.0.2", "127.0.0.3"}, []string{"address_blocked"}, true, "ssrf: address is blocked"},
	} {
		t.Run(row.name, func(t *testing.T) {
			net.DefaultResolver = answering(row.answers)
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}
			client := &http.Client{Transport: &retryhttp.Transport{Base: ssrf.Guard{Allow: allowLoopback}.Transport(), Policy: p}}
			_, err := client.Post("http://some.test.:1", "", nil) // no server listens on port 1
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			var reasons []string
			for _, attempt := range run.History {
				reasons = append(reasons, string(retryhttp.ReasonOf(attempt.Err)))
			}
			require.Equal(t, row.want, reasons)
			require.Equal(t, row.blocked, errors.Is(err, ssrf.ErrBlocked))
			require.ErrorContains(t, err, row.text)
		})
	}
}

// neverCalled is a RoundTripper that is not an *http.Transport.
type neverCalled struct{ http.RoundTripper }

func TestGuardTransportDoesNotNeedTheDefaultTransport(t *testing.T) {
	saved := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = saved })
	http.DefaultTransport = neverCalled{}

	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := guardedClient(t, ssrf.Guard{}.Transport()).Get(server.URL)
	require.ErrorIs(t, err, ssrf.ErrBlocked)
	require.Equal(t, neverCalled{}, http.DefaultTransport)
}

// answering returns a resolver that asks a DNS server in this process. It answers the n-th question for IPv4 addresses
// with the n-th list, from then on with the last, and any other question with nothing.
func answering(lists ...[]string) *net.Resolver {
	var asked atomic.Int64
	answer := func(c net.Conn) {
		defer c.Close()
		for {
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return // the resolver has closed its end
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			_, _ = io.ReadFull(c, query)
			end := 12 + bytes.IndexByte(query[12:], 0) + 5 // the question: a name, type and class
			message := append([]byte{0, 0}, query[:end]...)
			copy(message[4:], []byte{0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response, authoritative, to one question
			if query[end-3] == 1 {                                        // type A: RFC 1035, section 3.2.2
				for _, addr := range lists[min(int(asked.Add(1)), len(lists))-1] {
					message[9]++
					message = append(message, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name in the question, A, IN, TTL 0
					message = append(message, netip.MustParseAddr(addr).AsSlice()...)
				}
			}
			binary.BigEndian.PutUint16(message, uint16(len(message)-2))
			_, _ = c.Write(message)
		}
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // no PacketConn, hence DNS over TCP: RFC 1035, section 4.2.2
		go answer(server)
		return client, nil
	}}
}
