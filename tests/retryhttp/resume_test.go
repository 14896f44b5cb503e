package retryhttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// The first answer breaks off after so many bytes, and http.ServeContent answers the rest.
func TestResumeAtEveryByte(t *testing.T) {
	content := noise(4 << 10)
	for name, etag := range map[string]string{"ETag": `"v1"`, "Last-Modified": ""} {
		bothProtocols(t, name, func(t *testing.T, h2 bool) {
			var at, asked int
			server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked == 1 {
					w = &cutWriter{w, at}
				}
				serveFile(w, r, content, etag)
			})
			tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
			for at = range content {
				asked = 0
				body, resp, err := fetched(t, tr, server.request(t.Context(), http.MethodGet, nil))
				require.NoError(t, err, at)
				require.True(t, bytes.Equal(content, body), "%d: %d bytes", at, len(body))
				require.EqualValues(t, len(content), resp.ContentLength)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, 2, asked, at)
			}
		})
	}
}

// Nothing is lost or doubled however often and wherever a body breaks off, also one of unknown length.
func TestResumeAtRandomPoints(t *testing.T) {
	content := noise(64 << 20)
	want := sha256.Sum256(content)
	bothProtocols(t, "known length", func(t *testing.T, h2 bool) {
		breaks := 0
		server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			breaks++
			serveFile(&cutWriter{w, 1 + rand.IntN(8<<20)}, r, content, `"v1"`)
		})
		sum, n := sha256.New(), int64(0)
		tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
		resp, err := tr.RoundTrip(server.request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		n, err = io.Copy(sum, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.EqualValues(t, len(content), n)
		require.Equal(t, want[:], sum.Sum(nil))
		require.Greater(t, breaks, 8)
	})
	bothProtocols(t, "unknown length", func(t *testing.T, h2 bool) {
		asked := 0
		server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				serveFile(&cutWriter{w, 1 + rand.IntN(256<<10)}, r, content[:1<<20], `"v1"`)
				return
			}
			w.Header().Set("Etag", `"v1"`)
			w.WriteHeader(200)
			_, _ = (&cutWriter{w, 1 << 18}).Write(content[:1<<20])
		})
		tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
		body, resp, err := fetched(t, tr, server.request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.EqualValues(t, -1, resp.ContentLength)
		require.True(t, bytes.Equal(content[:1<<20], body))
	})
}

func TestARedirectedBodyIsResumedWhereItCameFrom(t *testing.T) {
	content := noise(1 << 12)
	var asked []string
	var mu sync.Mutex
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, "mirror"+r.URL.String())
		n := len(asked)
		mu.Unlock()
		if n < 4 {
			w = &cutWriter{w, 1000}
		}
		serveFile(w, r, content, `"v1"`)
	}))
	defer mirror.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, "origin"+r.URL.String())
		mu.Unlock()
		http.Redirect(w, r, mirror.URL+"/file?signature=1", http.StatusFound)
	}))
	defer origin.Close()
	client := &http.Client{Transport: &retryhttp.Transport{Base: socketTransport(t), Policy: atOnce, Resume: true}}
	resp, err := client.Get(origin.URL + "/latest")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.True(t, bytes.Equal(content, body))
	const there = "mirror/file?signature=1"
	require.Equal(t, []string{"origin/latest", there, there, there}, asked)
}

// Each resumption is a dial like any other: a name that changes its address between two parts reaches no inner host.
func TestAResumptionIsGuarded(t *testing.T) {
	var dials atomic.Int32
	server := socketServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		serveFile(&cutWriter{w, 10}, r, noise(100), `"v1"`)
	})
	base := socketTransport(t)
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			return nil, &net.OpError{Op: "dial", Err: ssrf.ErrBlocked}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, server.request(t.Context(), http.MethodGet, nil))
	require.ErrorIs(t, err, ssrf.ErrBlocked)
	require.Equal(t, retryhttp.AddressBlocked, retryhttp.ReasonOf(err))
	require.Len(t, body, 10)
	require.EqualValues(t, 2, dials.Load())
}

func TestARangeOfTheCallers(t *testing.T) {
	content := noise(4 << 10)
	for _, row := range []struct{ asked, want string }{
		{"bytes=1000-1999", "bytes=1500-1999"},
		{"bytes=1000-", "bytes=1500-4095"},
		{"bytes=-3000", "bytes=1596-4095"},
	} {
		var got []string
		server := socketServer(t, false, func(w http.ResponseWriter, r *http.Request) {
			if got = append(got, r.Header.Get("Range")); len(got) == 1 {
				w = &cutWriter{w, 500}
			}
			serveFile(w, r, content, `"v1"`)
		})
		req := server.request(t.Context(), http.MethodGet, nil)
		req.Header.Set("Range", row.asked)
		want, _, err := fetched(t, server.base, req)
		require.Error(t, err)
		require.Len(t, want, 500)
		got = nil
		body, resp, err := fetched(t, &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}, req)
		require.NoError(t, err)
		require.Equal(t, []string{row.asked, row.want}, got)
		require.Equal(t, row.asked, req.Header.Get("Range"), "the caller's request")
		var from, to, total int
		_, err = fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content[from:to+1], body))
		require.EqualValues(t, len(body), resp.ContentLength)
	}
}

// boundBody is a body that cannot be read once its request's context has ended.
type boundBody struct {
	io.Reader
	ctx  context.Context
	open *atomic.Int32
}

func (b *boundBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

func (b *boundBody) Close() error { b.open.Add(-1); return nil }

// parts is a RoundTripper that answers each request with the next function, and records the requests.
type parts struct {
	answers []func(*http.Request) *http.Response
	mu      sync.Mutex
	got     []*http.Request
	open    atomic.Int32 // bodies that are not closed
}

func (p *parts) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	n := len(p.got)
	p.got = append(p.got, req)
	p.mu.Unlock()
	resp := p.answers[min(n, len(p.answers)-1)](req)
	if resp == nil {
		return nil, errFault
	}
	p.open.Add(1)
	resp.Body = partBody{&boundBody{resp.Body, req.Context(), &p.open}, resp.Body}
	return resp, nil
}

// partBody closes what is inside as well.
type partBody struct {
	*boundBody
	inner io.Closer
}

func (b partBody) Close() error {
	_ = b.inner.Close()
	return b.boundBody.Close()
}

// ranges returns the Range and If-Range of each request after the first.
func (p *parts) ranges() (list []string) {
	for _, req := range p.got[1:] {
		list = append(list, req.Header.Get("Range")+" "+req.Header.Get("If-Range"))
	}
	return list
}

// part returns an answer with the body, which ends with err, a ContentLength, and a header of pairs of name and value.
func part(status int, body string, err error, length int64, header ...string) func(*http.Request) *http.Response {
	return func(req *http.Request) *http.Response {
		resp := answer(req, status, header...)
		resp.ContentLength = length
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(err)))
		return resp
	}
}

const (
	alphabet = "abcdefghijklmnopqrstuvwxyz"
	v1       = `"v1"`
)

var reset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// half is an answer with the first ten of 26 bytes.
var half = part(200, alphabet[:10], reset, 26, "Etag", v1)

// rest answers with a part of the alphabet, from 10.
func rest(contentRange string, header ...string) func(*http.Request) *http.Response {
	return part(206, alphabet[10:], io.EOF, -1, append([]string{"Content-Range", contentRange}, header...)...)
}

// Code that decodes a body deletes what says how it was coded.
func TestTheRestIsComparedWithTheResponseAsItArrived(t *testing.T) {
	above := func(change func(*http.Response)) roundTripper {
		base := &parts{answers: []func(*http.Request) *http.Response{
			part(206, alphabet[5:10], reset, 21, "Content-Range", "bytes 5-25/26", "Etag", v1, "Content-Encoding", "x"),
			part(206, alphabet[10:], io.EOF, 16, "Content-Range", "bytes 10-25/26", "Etag", v1, "Content-Encoding", "x")}}
		tr := &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}
		return func(req *http.Request) (*http.Response, error) {
			resp, err := tr.RoundTrip(req)
			if err == nil {
				change(resp)
			}
			return resp, err
		}
	}
	for name, change := range map[string]func(*http.Response){
		"a decoder":   func(resp *http.Response) { resp.Header.Del("Content-Encoding"); resp.ContentLength = -1 },
		"a 200 of it": func(resp *http.Response) { resp.StatusCode = 200; resp.Header.Del("Content-Range") },
		"all of it":   func(resp *http.Response) { resp.Header = http.Header{}; resp.Uncompressed = true },
	} {
		t.Run(name, func(t *testing.T) {
			req := get(t.Context())
			req.Header.Set("Range", "bytes=5-")
			body, _, err := fetched(t, above(change), req)
			require.NoError(t, err)
			require.Equal(t, alphabet[5:], string(body))
		})
	}
}

func TestAPartOfABodyDepositsNothing(t *testing.T) {
	content := alphabet + alphabet + alphabet
	byOne := func(err error) *parts {
		base := &parts{}
		for i := range content {
			last := err
			if i == len(content)-1 {
				last = io.EOF
			}
			if i == 0 {
				base.answers = append(base.answers, part(200, content[:1], last, int64(len(content)), "Etag", v1))
				continue
			}
			end := i
			if last == reset {
				end = len(content) - 1
			}
			base.answers = append(base.answers, part(206, content[i:i+1], last, int64(end-i+1),
				"Content-Range", fmt.Sprintf("bytes %d-%d/%d", i, end, len(content)), "Etag", v1))
		}
		return base
	}
	for _, row := range []struct {
		name  string
		base  *parts
		start int
		want  float64
	}{
		{"short parts are free", byOne(io.EOF), 1, 1.1 - 1}, // but for the first, which breaks off
		{"breaks are paid for", byOne(reset), 90, 90.1 - 77},
	} {
		t.Run(row.name, func(t *testing.T) {
			policy := atOnce
			policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: row.start, Burst: 100})
			body, _, err := fetched(t, &retryhttp.Transport{Base: row.base, Policy: policy, Resume: true}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, content, string(body))
			require.InDelta(t, row.want, policy.Budget.Tokens(), 1e-9)
		})
	}
	t.Run("without a token there is no rest", func(t *testing.T) {
		policy := atOnce
		policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1})
		_, _, err := fetched(t, &retryhttp.Transport{Base: byOne(reset), Policy: policy, Resume: true}, get(t.Context()))
		require.ErrorIs(t, err, retry.BudgetExhausted)
		require.InDelta(t, 0.1, policy.Budget.Tokens(), 1e-9)
	})
	t.Run("a retry that is not made is paid back", func(t *testing.T) {
		policy := atOnce
		policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		policy.Observe = func(_ context.Context, e retry.Event) {
			if e.Policy == "body" && e.Decision.Status == retry.WaitingRetry {
				cancel()
			}
		}
		_, _, err := fetched(t, &retryhttp.Transport{Base: byOne(reset), Policy: policy, Resume: true}, get(ctx))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.InDelta(t, 1.1, policy.Budget.Tokens(), 1e-9)
	})
	t.Run("the policy's own Pay is asked", func(t *testing.T) {
		policy := atOnce
		policy.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		policy.Pay = func(context.Context, retry.Decision) bool { return false }
		_, _, err := fetched(t, &retryhttp.Transport{Base: byOne(reset), Policy: policy, Resume: true}, get(t.Context()))
		require.ErrorIs(t, err, retry.BudgetExhausted)
		require.InDelta(t, 1.1, policy.Budget.Tokens(), 1e-9)
	})
}

// A part of up to 64 MiB is passed over.
func TestHowMuchIsPassedOver(t *testing.T) {
	const limit = 64 << 20
	for _, row := range []struct {
		delivered int
		fails     bool
	}{{limit, false}, {limit + 1, true}} {
		size := limit + 10
		asked := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			asked++
			resp := answer(req, 200, "Etag", v1)
			resp.ContentLength = int64(size)
			resp.Body = io.NopCloser(io.LimitReader(zeros{}, int64(size)))
			if asked == 1 {
				resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(zeros{}, int64(row.delivered)), failsWith{reset}))
			}
			return resp, nil
		})
		resp, err := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.fails, err != nil)
		if row.fails {
			require.Equal(t, retryhttp.NotResumable, retryhttp.ReasonOf(err))
		} else {
			require.EqualValues(t, size, n)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failsWith struct{ err error }

func (f failsWith) Read([]byte) (int, error) { return 0, f.err }

func TestTheBodyOfAHedgeIsResumed(t *testing.T) {
	inBubble(t, "once, and its rest is hedged too", func(t *testing.T) {
		hangs := func(req *http.Request) *http.Response {
			<-req.Context().Done()
			return nil
		}
		end := rest("bytes 10-25/26", "Etag", v1)
		base := &parts{answers: []func(*http.Request) *http.Response{hangs, half, hangs, end}}
		tr := &retryhttp.Transport{Base: base, Policy: three, Resume: true, Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Second}}}
		body, _, err := fetched(t, tr, request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Equal(t, []string{" ", "bytes=10- " + v1, "bytes=10- " + v1}, base.ranges())
		require.Zero(t, base.open.Load())
	})
}

// Replicas can have ETags of their own, so the rest is asked for where the body came from.
func TestTheRestComesFromTheReplicaThatAnswered(t *testing.T) {
	inBubble(t, "by a hedge", func(t *testing.T) {
		down := func(*http.Request) *http.Response { return nil }
		hangs := func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
		first := &parts{answers: []func(*http.Request) *http.Response{hangs, rest("bytes 10-25/26", "Etag", `"of the first"`)}}
		replica := &parts{answers: []func(*http.Request) *http.Response{half, down, rest("bytes 10-25/26", "Etag", v1)}}
		hedge := &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Second}, Base: replica}
		tr := &retryhttp.Transport{Base: first, Policy: three, Resume: true, Hedge: hedge}
		body, _, err := fetched(t, tr, request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Len(t, first.got, 1)
		require.Same(t, replica, hedge.Base, "the caller's")
	})
	inBubble(t, "by the first, and its hedges go to the other", func(t *testing.T) {
		hangs := func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
		first := &parts{answers: []func(*http.Request) *http.Response{half, hangs}}
		replica := &parts{answers: []func(*http.Request) *http.Response{rest("bytes 10-25/26", "Etag", v1)}}
		tr := &retryhttp.Transport{Base: first, Policy: three, Resume: true,
			Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Second}, Base: replica}}
		body, _, err := fetched(t, tr, request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Len(t, first.got, 2)
	})
}

// A client removes credentials at a redirect to another host, and the rest is asked for without them.
func TestCredentialsDoNotFollowAResumption(t *testing.T) {
	moved := part(302, "", io.EOF, 0, "Location", "http://mirror.example/file")
	base := &parts{answers: []func(*http.Request) *http.Response{moved, half, rest("bytes 10-25/26", "Etag", v1)}}
	tr := &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true, AttemptHeader: retryhttp.AttemptHeader,
		TimeLeftHeaders: map[string]string{"example.com": retryhttp.EnvoyTimeLeftHeader, "mirror.example": retryhttp.EnvoyTimeLeftHeader}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	req := request(ctx, http.MethodGet, nil)
	req.Header.Set("Authorization", "secret")
	req.Header.Set("Cookie", "session=secret")
	resp, err := (&http.Client{Transport: tr}).Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, alphabet, string(body))
	require.Equal(t, "secret", base.got[0].Header.Get("Authorization"))
	require.Len(t, base.got, 3)
	require.Equal(t, "mirror.example", base.got[2].URL.Host)
	require.Equal(t, http.Header{"Accept-Encoding": {"identity"}, "Range": {"bytes=10-"}, "If-Range": {v1}, "Referer": {"http://example.com/"}},
		base.got[2].Header)
}
