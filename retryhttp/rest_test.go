package retryhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Servers of files that are stored in gzip send them so whatever a request accepts. With Resume the caller gets what it
// gets without.
func TestWhatIsStoredInGzipArrivesAsWithoutResume(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 20_000)
	content = append(content, noise(200_000)...)
	stored := zipped(t, content)
	for _, row := range []struct {
		name    string
		request func(*http.Request)
		base    func(*http.Transport)
		decoded bool
	}{
		{"a plain GET", func(*http.Request) {}, nil, true},
		{"one that accepts gzip itself", func(req *http.Request) { req.Header.Set("Accept-Encoding", "gzip") }, nil, false},
		{"one on a base that does not decode", func(*http.Request) {}, func(b *http.Transport) { b.DisableCompression = true }, false},
		{"one of a range", func(req *http.Request) { req.Header.Set("Range", "bytes=0-") }, nil, false},
	} {
		for _, status := range []int{200, 404} {
			t.Run(fmt.Sprintf("%s, %d", row.name, status), func(t *testing.T) {
				asked := 0
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked++
					w.Header().Set("Content-Encoding", "gzip")
					w.Header().Set("Etag", `"v1"`)
					if status == 404 {
						w.WriteHeader(404)
						_, _ = w.Write(stored)
						return
					}
					http.ServeContent(&cutWriter{w, 50_000}, r, "", longAgo, bytes.NewReader(stored))
				}))
				defer server.Close()
				base := retryhttp.NewBase()
				if row.base != nil {
					row.base(base)
				}
				defer base.CloseIdleConnections()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				require.NoError(t, err)
				row.request(req)
				body, resp, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, req)
				require.NoError(t, err)
				if status == 200 {
					require.Equal(t, len(stored)/50_000+1, asked)
				}
				require.Equal(t, row.decoded, resp.Uncompressed)
				if row.decoded {
					require.True(t, bytes.Equal(content, body), "%d bytes", len(body))
					require.Empty(t, resp.Header.Get("Content-Encoding")+resp.Header.Get("Content-Length"))
					require.EqualValues(t, -1, resp.ContentLength)
				} else {
					require.True(t, bytes.Equal(stored, body), "%d bytes", len(body))
					require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
				}
			})
		}
	}
	t.Run("what calls itself gzip and is not, is an error", func(t *testing.T) {
		base := &parts{answers: []reply{part(200, alphabet, io.EOF, 26, "Content-Encoding", "GZIP", "Etag", v1)}}
		body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, get(t.Context()))
		require.ErrorIs(t, err, gzip.ErrHeader)
		require.Empty(t, body)
		require.Zero(t, base.open.Load())
	})
}

// To code outside, a resumption that fails is a body that broke off: another GET may bring it.
func TestAResumptionThatFailsIsRetryableOutside(t *testing.T) {
	weak := part(200, alphabet[:10], io.ErrUnexpectedEOF, 26)
	for _, row := range []struct {
		name   string
		method string
		parts  []reply
		reason retryhttp.Reason
	}{
		{"no validator", "GET", []reply{weak}, retryhttp.BodyTruncated},
		{"a POST", "POST", []reply{weak}, retryhttp.BodyTruncated},
		{"another version", "GET", []reply{half, part(200, alphabet, io.EOF, 26, "Etag", `"v2"`)}, retryhttp.ContentChanged},
		{"a wrong range", "GET", []reply{half, rest("bytes 9-25/26", "Etag", v1)}, retryhttp.NotResumable},
		{"a URL that has expired", "GET", []reply{half, part(403, "", io.EOF, 0)}, "status_403"},
		{"all attempts", "GET", []reply{half, part(503, "", io.EOF, 0)}, "status_503"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := fetched(t, &retryhttp.Transport{Base: &parts{answers: row.parts}, Policy: atOnce, Resume: true}, request(t.Context(), row.method, nil))
			require.Equal(t, row.reason, retryhttp.ReasonOf(err))
			outside := retry.Policy{Classify: retryhttp.Classify}
			class, _ := outside.Judge(err)
			require.Equal(t, retry.Retryable, class)
			class, _ = retry.Policy{}.Judge(err)
			require.Equal(t, retry.Retryable, class)
			require.False(t, retry.IsAmbiguous(err))

			outside.Backoff, outside.MaxAttempts = atOnce.Backoff, 2
			n := 0
			require.NoError(t, retry.Do(t.Context(), outside, func(ctx context.Context) error {
				if n++; n == 1 {
					return err
				}
				return nil
			}))
		})
	}
	t.Run("unless its caller has gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		base := &parts{answers: []reply{half, func(*http.Request) *http.Response { cancel(); return nil }}}
		_, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, get(ctx))
		require.Equal(t, retry.Terminal, retryhttp.Classify(err))
	})
}

// A caller that reads a body to its end need not close it for that.
func TestTheContextOfTheRestEndsWithTheBody(t *testing.T) {
	base := &parts{answers: []reply{half, theRest}}
	resp, err := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, alphabet, string(body))
	require.ErrorIs(t, base.got[1].Context().Err(), context.Canceled)
	require.Zero(t, base.open.Load())
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return ":" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestTheDigestOfABody(t *testing.T) {
	good, bad := "sha-256="+sha(alphabet), "sha-256="+sha("x")
	first := func(status int, header ...string) reply {
		return part(status, alphabet[:10], reset, 26, append([]string{"Etag", v1}, header...)...)
	}
	second := theRest
	for _, row := range []struct {
		name  string
		parts []reply
		fails bool
	}{
		{"of two parts", []reply{first(200, "Content-Digest", good), second}, false},
		{"of two parts that do not match", []reply{first(200, "Content-Digest", bad), second}, true},
		{"of what the server has", []reply{first(200, "Repr-Digest", good), second}, false},
		{"of what the server has, which does not match", []reply{first(200, "Repr-Digest", bad), second}, true},
		{"of the content comes first", []reply{first(200, "Content-Digest", good, "Repr-Digest", bad), second}, false},
		{"among others", []reply{first(200, "Content-Digest", "sha-512=:AA==:, "+bad+";x=1 , md5=:AA==:"), second}, true},
		{"in a second field", []reply{first(200, "Content-Digest", "md5=:AA==:", "Content-Digest", bad), second}, true},
		{"the last of two counts", []reply{first(200, "Content-Digest", bad+","+good), second}, false},
		{"of another kind is not known", []reply{first(200, "Content-Digest", "sha-512="+sha("x")), second}, false},
		{"in capitals is another", []reply{first(200, "Content-Digest", "SHA-256="+sha("x")), second}, false},
		{"without colons is none", []reply{first(200, "Content-Digest", strings.ReplaceAll(bad, ":", "")), second}, false},
		{"without the last colon is none", []reply{first(200, "Content-Digest", bad[:len(bad)-1]), second}, false},
		{"of another length is none", []reply{first(200, "Content-Digest", "sha-256=:AAAA:"), second}, false},
		{"of a body in one part", []reply{part(200, alphabet, io.EOF, 26, "Content-Digest", bad)}, true},
		{"of a body of unknown length", []reply{part(200, alphabet, io.EOF, -1, "Content-Digest", bad)}, true},
		{"of a part, by its own", []reply{
			part(206, alphabet[:10], io.EOF, 10, "Content-Range", "bytes 0-9/26", "Content-Digest", bad)}, true},
		{"of the whole is not that of a part", []reply{
			part(206, alphabet[:10], io.EOF, 10, "Content-Range", "bytes 0-9/26", "Repr-Digest", bad)}, false},
		{"is not of what was decoded", []reply{func(req *http.Request) *http.Response {
			resp := part(200, alphabet, io.EOF, -1, "Content-Digest", bad)(req)
			resp.Uncompressed = true
			return resp
		}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			req := get(t.Context())
			body, resp, err := fetched(t, &retryhttp.Transport{Base: &parts{answers: row.parts}, Policy: atOnce, Resume: true}, req)
			if !row.fails {
				require.NoError(t, err)
				return
			}
			require.Equal(t, retryhttp.DigestMismatch, retryhttp.ReasonOf(err))
			require.Equal(t, retry.Retryable, retryhttp.Classify(err))
			require.NotEmpty(t, body)
			_, again := resp.Body.Read(make([]byte, 1))
			require.Equal(t, err, again)
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Same(t, req, failed.Request)
		})
	}
	t.Run("is not looked at without Resume", func(t *testing.T) {
		base := &parts{answers: []reply{part(200, alphabet, io.EOF, 26, "Content-Digest", bad)}}
		_, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce}, get(t.Context()))
		require.NoError(t, err)
	})
	t.Run("names the first eight parts", func(t *testing.T) {
		for lastBegan, want := range map[int]string{16: "0, 10, 11, 12, 13, 14, 15, 16", 25: "0, 10, 11, 12, 13, 14, 15, 16, ..."} {
			base := &parts{answers: []reply{first(200, "Content-Digest", bad)}}
			for i := 10; i <= lastBegan; i++ {
				end := i + 1
				if i == lastBegan {
					end = 26
				}
				span := fmt.Sprintf("bytes %d-%d/26", i, end-1)
				base.answers = append(base.answers, part(206, alphabet[i:end], io.EOF, int64(end-i), "Content-Range", span, "Etag", v1))
			}
			_, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, get(t.Context()))
			_, places, _ := strings.Cut(err.Error(), "its parts began at byte ")
			require.Equal(t, want, places)
		}
	})
	t.Run("names the parts", func(t *testing.T) {
		base := &parts{answers: []reply{first(200, "Content-Digest", bad), second}}
		_, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, get(t.Context()))
		require.EqualError(t, err, fmt.Sprintf("retryhttp: digest_mismatch: the body has the SHA-256 %s, not %s as by Content-Digest; "+
			"its parts began at byte 0, 10", strings.Trim(sha(alphabet), ":"), strings.Trim(sha("x"), ":")))
	})
}

// The URL of a file store is signed for a time, and a client was redirected there.
func TestAnExpiredURLIsAskedForAgain(t *testing.T) {
	content := noise(100_000)
	type server struct {
		signed int // the newest signature
		log    []string
	}
	again := []string{"/file", "/signed/1", "/signed/1", "/file", "/signed/2", "/signed/2", "/file", "/signed/3"}
	for _, row := range []struct {
		name    string
		refusal int
		first   func(w http.ResponseWriter, r *http.Request, s *server)
		want    []string
		fails   retryhttp.Reason
	}{
		{name: "after a 403", refusal: 403, want: again},
		{name: "after a 401", refusal: 401, want: again},
		{name: "after a 404", refusal: 404, want: again},
		{name: "after a 410", refusal: 410, want: again},
		{name: "not after a 400", refusal: 400, want: []string{"/file", "/signed/1", "/signed/1"}, fails: "status_400"},
		{name: "which answers itself", refusal: 403, first: func(w http.ResponseWriter, r *http.Request, _ *server) {
			serveFile(w, r, content, `"v1"`)
		}, want: []string{"/file", "/signed/1", "/signed/1", "/file"}},
		{name: "once, if it refuses too", refusal: 403, first: func(w http.ResponseWriter, r *http.Request, _ *server) {
			w.WriteHeader(404)
		}, want: []string{"/file", "/signed/1", "/signed/1", "/file"}, fails: "status_404"},
		{name: "once, if it leads elsewhere", refusal: 403, first: func(w http.ResponseWriter, r *http.Request, _ *server) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		}, want: []string{"/file", "/signed/1", "/signed/1", "/file"}, fails: "status_403"},
		{name: "once, if it has another version by now", refusal: 403, first: func(w http.ResponseWriter, r *http.Request, _ *server) {
			serveFile(w, r, content, `"v2"`)
		}, want: []string{"/file", "/signed/1", "/signed/1", "/file"}, fails: retryhttp.ContentChanged},
		{name: "again, if it fails at first", refusal: 403, first: func(w http.ResponseWriter, r *http.Request, s *server) {
			if s.signed++; s.signed == 2 {
				w.WriteHeader(503)
				return
			}
			serveFile(w, r, content, `"v1"`)
		}, want: []string{"/file", "/signed/1", "/signed/1", "/file", "/signed/1", "/file"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := new(server)
			uses := map[string]int{}
			peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.log = append(s.log, r.URL.Path)
				if r.URL.Path == "/file" {
					if s.signed > 0 && row.first != nil {
						row.first(w, r, s)
						return
					}
					s.signed++
					http.Redirect(w, r, "/signed/"+strconv.Itoa(s.signed), http.StatusFound)
					return
				}
				if uses[r.URL.Path]++; uses[r.URL.Path] > 1 {
					w.WriteHeader(row.refusal)
					return
				}
				serveFile(&cutWriter{w, 40_000}, r, content, `"v1"`)
			}))
			defer peer.Close()
			base := retryhttp.NewBase()
			defer base.CloseIdleConnections()
			client := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).Client()
			resp, err := client.Get(peer.URL + "/file")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, row.want, s.log)
			if row.fails != "" {
				require.Equal(t, row.fails, retryhttp.ReasonOf(err))
				return
			}
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, body))
		})
	}
	t.Run("not if it is the first URL itself", func(t *testing.T) {
		_, base, err := resumed(t, atOnce, half, part(403, "", io.EOF, 0))
		require.EqualValues(t, "status_403", retryhttp.ReasonOf(err))
		require.Len(t, base.got, 2)
	})
	t.Run("once, if it leads further than before", func(t *testing.T) {
		to := func(path string) reply { return part(302, "", io.EOF, 0, "Location", path) }
		base := &parts{answers: []reply{to("/signed/1"), half, part(403, "", io.EOF, 0), to("/signed/2"), to("/signed/3")}}
		client := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).Client()
		resp, err := client.Do(get(t.Context()))
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.EqualValues(t, "status_302", retryhttp.ReasonOf(err))
		require.Len(t, base.got, 5)
	})
}
