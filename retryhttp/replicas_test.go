package retryhttp_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// hosts notes to which host each request goes, and answers it.
type hosts struct {
	mu     sync.Mutex
	asked  []string
	answer func(*http.Request) (*http.Response, error)
}

func (h *hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.asked = append(h.asked, req.URL.Host)
	h.mu.Unlock()
	return h.answer(req)
}

func toHost(ctx context.Context, host string) *http.Request {
	req := get(ctx)
	req.URL.Host = host
	req.Host = host
	return req
}

func TestEachAttemptGoesToAnotherReplica(t *testing.T) {
	names := []string{"a.example.com", "b.example.com:8443", "c.example.com"}
	four := atOnce
	four.MaxAttempts = 4
	for _, row := range []struct {
		name  string
		first int
		to    string
		want  string
	}{
		{"in the order of the list", 0, names[0], "a b c a"},
		{"from First on", 1, names[0], "b c a b"},
		{"whichever host is named", 0, "C.Example.com", "a b c a"},
		{"a First beyond the list wraps around", 3*1_000_000 + 2, names[0], "c a b c"},
		{"a negative First wraps around", -1, names[0], "c a b c"},
		{"the most negative First wraps around", math.MinInt, names[0], "b c a b"},
		{"a host that is not in the list is asked itself", 0, "elsewhere.example.com", "elsewhere elsewhere elsewhere elsewhere"},
		{"the same name with another port is asked itself", 0, "b.example.com", "b b b b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := &hosts{answer: always(503)}
			tr := &retryhttp.Transport{Policy: four, Base: &retryhttp.Replicas{Base: base, Hosts: names, First: row.first}}
			req := toHost(t.Context(), row.to)
			_, resp, err := run(t, tr, req)
			require.NoError(t, err)
			var short []string
			for _, host := range base.asked {
				name, _, _ := strings.Cut(host, ".")
				short = append(short, name)
			}
			require.Equal(t, row.want, strings.Join(short, " "))
			require.Equal(t, row.to, resp.Request.URL.Host, "the response's Request is the caller's")
			require.Equal(t, row.to, req.URL.Host)
		})
	}
	t.Run("an attempt of a run around it counts too", func(t *testing.T) {
		base := &hosts{answer: func(*http.Request) (*http.Response, error) { return nil, errFault }}
		replicas := &retryhttp.Replicas{Base: base, Hosts: names}
		for name, within := range map[string]func(context.Context) context.Context{
			"retry.Do":                      func(ctx context.Context) context.Context { return ctx },
			"retry.Do and retry.OneAttempt": retry.OneAttempt,
		} {
			base.asked = nil
			_ = retry.Do(t.Context(), atOnce, func(ctx context.Context) error {
				_, err := replicas.RoundTrip(toHost(within(ctx), names[0]))
				return err
			})
			require.Equal(t, names, base.asked, name)
		}
	})
}

func TestWhatAReplicaIsSent(t *testing.T) {
	seen := func(first int, change func(*http.Request)) *http.Request {
		var got *http.Request
		replicas := &retryhttp.Replicas{Hosts: []string{"a:1", "b:2"}, First: first, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			got = req
			return answer(req, 200), nil
		})}
		req := toHost(t.Context(), "a:1")
		req.Header.Set("Authorization", "Bearer secret")
		change(req)
		resp, err := replicas.RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, got, resp.Request)
		return got
	}
	got := seen(1, func(*http.Request) {})
	require.Equal(t, []string{"b:2", "b:2", "Bearer secret"}, []string{got.URL.Host, got.Host, got.Header.Get("Authorization")})
	got = seen(1, func(req *http.Request) { req.Host = "virtual.example.com" })
	require.Equal(t, []string{"b:2", "virtual.example.com"}, []string{got.URL.Host, got.Host}, "a Host of the caller's own stays")
}

func TestWhatReplicasRefuse(t *testing.T) {
	for _, row := range []struct {
		name  string
		hosts []string
		want  string
	}{
		{"an empty list", nil, "retryhttp: Replicas.Hosts [] is empty"},
		{"a URL", []string{"a", "https://b"}, `retryhttp: Replicas.Hosts[1] "https://b" is not a host`},
		{"half an IPv6 address", []string{"[::1"}, `retryhttp: Replicas.Hosts[0] "[::1" is not a host`},
		{"no name", []string{""}, `retryhttp: Replicas.Hosts[0] "" is not a host`},
		{"a line break", []string{"a\r\nX: 1"}, `retryhttp: Replicas.Hosts[0] "a\r\nX: 1" is not a host`},
	} {
		t.Run(row.name, func(t *testing.T) {
			replicas := &retryhttp.Replicas{Hosts: row.hosts, Base: always(200)}
			require.EqualError(t, replicas.Validate(), row.want)
			body := newBody("x")
			req := request(t.Context(), http.MethodPut, body)
			_, err := replicas.RoundTrip(req)
			require.EqualError(t, err, row.want)
			require.EqualValues(t, 1, body.n.Load(), "the body is closed")
		})
	}
}

func TestReplicasCloseTheIdleConnectionsOfTheirBase(t *testing.T) {
	idle := &idleCloser{}
	(&retryhttp.Replicas{Base: idle, Hosts: []string{"a"}}).CloseIdleConnections()
	require.Equal(t, 1, idle.n)
	new(retryhttp.Replicas).CloseIdleConnections()
}

type spanKey struct{}

func TestAHedgeGoesToAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &hosts{answer: func(req *http.Request) (*http.Response, error) {
			select {
			case <-time.After(time.Second):
				return answer(req, 503), nil
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}}
		derived := roundTripper(func(req *http.Request) (*http.Response, error) { // as a tracer does
			return (&retryhttp.Replicas{Base: base, Hosts: []string{"a", "b", "c"}}).RoundTrip(
				req.WithContext(context.WithValue(req.Context(), spanKey{}, 1)))
		})
		tr := &retryhttp.Transport{Base: derived, Policy: three, Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: 50 * time.Millisecond, MaxCalls: 3}}}
		_, _, err := run(t, tr, toHost(t.Context(), "a"))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c", "b", "c", "a", "c", "a", "b"}, base.asked)
	})
}

func TestTheRestOfABodyComesFromTheReplicaOfItsBeginning(t *testing.T) {
	bodies := []reply{
		part(503, "", io.EOF, 0), half, part(503, "", io.EOF, 0), part(206, alphabet[10:20], reset, -1, "Content-Range", "bytes 10-25/26", "Etag", v1),
		part(206, alphabet[20:22], io.EOF, 2, "Content-Range", "bytes 20-21/26", "Etag", v1),
		part(206, alphabet[22:], io.EOF, 4, "Content-Range", "bytes 22-25/26", "Etag", v1),
	}
	for first, want := range []string{"a b b c c c", "b c c a a a", "c a a b b b"} {
		inner := &parts{answers: bodies}
		base := &hosts{answer: inner.RoundTrip}
		tr := &retryhttp.Transport{Policy: atOnce, Resume: true, Base: &retryhttp.Replicas{Base: base, Hosts: []string{"a", "b", "c"}, First: first}}
		body, _, err := fetched(t, tr, toHost(t.Context(), "a"))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Equal(t, want, strings.Join(base.asked, " "), "a failure moves on, a break and a short part do not")
	}
}
