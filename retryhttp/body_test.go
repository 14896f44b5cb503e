package retryhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

// put returns a PUT whose body is a stream: it has no GetBody.
func put(ctx context.Context, body io.Reader) *http.Request {
	req := request(ctx, http.MethodPut, nil)
	req.Body = io.NopCloser(body)
	if closer, ok := body.(io.ReadCloser); ok {
		req.Body = closer
	}
	return req
}

// bodies is a RoundTripper that reads and closes the body of each attempt, and answers 503.
func bodies(got *[]string) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		*got = append(*got, string(body))
		return answer(req, 503), req.Body.Close()
	}
}

func TestReplay(t *testing.T) {
	text := strings.Repeat("0123456789", 10)
	times := func(n int) []string { return slices.Repeat([]string{text}, n) }
	getBody := func(body io.Reader) *http.Request { return request(t.Context(), http.MethodPut, body) }
	other := put(t.Context(), strings.NewReader(text))
	other.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), nil }
	known := put(t.Context(), strings.NewReader(text))
	known.ContentLength = 100
	for _, row := range []struct {
		name string
		tr   retryhttp.Transport
		req  *http.Request
		want []string
	}{
		{"a strings.Reader", retryhttp.Transport{}, getBody(strings.NewReader(text)), times(3)},
		{"a bytes.Buffer", retryhttp.Transport{}, getBody(bytes.NewBufferString(text)), times(3)},
		{"a GetBody of one's own", retryhttp.Transport{}, other, times(3)},
		{"a stream that was read: once", retryhttp.Transport{}, put(t.Context(), strings.NewReader(text)), times(1)},
		{"a stream that fits the buffer", retryhttp.Transport{BufferBody: 100}, put(t.Context(), strings.NewReader(text)), times(3)},
		{"a stream of known length that fits the buffer", retryhttp.Transport{BufferBody: 100}, known, times(3)},
		{"a stream a byte too long for the buffer: whole, and once", retryhttp.Transport{BufferBody: 99}, put(t.Context(), strings.NewReader(text)), times(1)},
		{"a buffer without limit", retryhttp.Transport{BufferBody: 1<<63 - 1}, put(t.Context(), strings.NewReader(text)), times(3)},
		{"an empty stream", retryhttp.Transport{BufferBody: 1}, put(t.Context(), strings.NewReader("")), []string{"", "", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			row.tr.Base, row.tr.Policy = bodies(&got), atOnce
			o, resp, err := run(t, &row.tr, row.req)
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, row.want, got)
			if len(row.want) == 1 {
				require.Equal(t, []string{"status_503/body_not_replayable"}, reasons(o))
			}
		})
	}
	t.Run("a stream longer than the buffer is not read before it is sent", func(t *testing.T) {
		req := put(t.Context(), iotest.ErrReader(errFault))
		req.ContentLength = 101
		tr := &retryhttp.Transport{Policy: atOnce, BufferBody: 100, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return answer(req, 503), req.Body.Close()
		})}
		o, _, err := run(t, tr, req)
		require.NoError(t, err)
		require.Equal(t, 3, o.Attempts)
	})
	for name, reports := range map[string]bool{"": false, ", if it calls itself complete then": true} {
		inBubble(t, "a body that stalls while it is buffered ends with the caller, and is closed once"+name, func(t *testing.T) {
			body := newPipe()
			stalls := io.ReadCloser(body)
			if reports {
				stalls = endsOnClose{body}
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, _, err := run(t, &retryhttp.Transport{Base: roundTripper(nil), BufferBody: 100}, put(ctx, stalls))
			require.ErrorIs(t, err, retry.CallerCanceled)
			synctest.Wait()
			require.Equal(t, int32(1), body.closed.Load())
		})
	}
}

func TestABufferedBodyHasItsLength(t *testing.T) {
	for _, row := range []struct {
		name   string
		text   string
		change func(*http.Request)
		buffer int64
		want   int64
	}{
		{"of unknown length", "1234567", func(req *http.Request) { req.ContentLength = -1 }, 10, 7},
		{"of a length that is not said", "1234567", func(*http.Request) {}, 7, 7},
		{"that is empty", "", func(*http.Request) {}, 10, 0},
		{"that is too long for the buffer has not", "1234567", func(req *http.Request) { req.ContentLength = -1 }, 6, -1},
		{"with a trailer, which only chunks can have, has not", "1234567", func(req *http.Request) {
			req.ContentLength, req.Trailer = -1, http.Header{"X-Sum": {"28"}}
		}, 10, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var lengths []int64
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				lengths = append(lengths, req.ContentLength)
				_, _ = io.Copy(io.Discard, req.Body)
				return answer(req, 503), req.Body.Close()
			})
			req := put(t.Context(), strings.NewReader(row.text))
			row.change(req)
			_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce, BufferBody: row.buffer}, req)
			require.NoError(t, err)
			require.Equal(t, []int64{row.want}, slices.Compact(lengths), "of each attempt")
		})
	}
}

func TestBodyFaults(t *testing.T) {
	failing := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errFault)))
	}
	sends := roundTripper(func(req *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
		return nil, err
	})
	stream := put(t.Context(), failing())
	again := put(t.Context(), failing())
	again.GetBody = func() (io.ReadCloser, error) { return failing(), nil }
	for _, row := range []struct {
		name string
		tr   retryhttp.Transport
		req  *http.Request
	}{
		{"of a stream", retryhttp.Transport{}, stream},
		{"of a body with GetBody", retryhttp.Transport{}, again},
		{"of a body that is to be buffered", retryhttp.Transport{BufferBody: 100}, put(t.Context(), failing())},
	} {
		t.Run("a read error "+row.name+" is terminal", func(t *testing.T) {
			row.tr.Base, row.tr.Policy = sends, atOnce
			o, _, err := run(t, &row.tr, row.req)
			require.ErrorIs(t, err, errFault)
			require.Equal(t, []string{"body_failed/body_failed"}, reasons(o))
		})
	}
	for _, row := range []struct {
		name   string
		length int64
		buffer int64
		body   io.Reader // nil is "xxx" in memory
		sent   int
		want   string
	}{
		{"too short, in memory", 4, 0, nil, 0, "body_failed/body_failed"},
		{"too long, in memory", 2, 0, nil, 0, "body_failed/body_failed"},
		{"too short, to be buffered", 4, 10, strings.NewReader("xxx"), 0, "body_failed/body_failed"},
		{"too short, a stream", 4, 0, strings.NewReader("xxx"), 1, "body_failed/body_failed"},
		{"too long, a stream", 2, 0, strings.NewReader("xxx"), 1, "body_failed/body_failed"},
		{"too short, in pieces", 4, 0, iotest.OneByteReader(strings.NewReader("xxx")), 1, "body_failed/body_failed"},
		{"too long, in pieces", 2, 0, iotest.OneByteReader(strings.NewReader("xxx")), 1, "body_failed/body_failed"},
		{"which it is, in pieces, so that the fault is another's", 3, 0, iotest.OneByteReader(strings.NewReader("xxx")), 1, "conn_closed/body_not_replayable"},
	} {
		t.Run("a body that is not as long as its request says is terminal: "+row.name, func(t *testing.T) {
			req := request(t.Context(), http.MethodPut, strings.NewReader("xxx"))
			if row.body != nil {
				req = put(t.Context(), row.body)
			}
			req.ContentLength = row.length
			n := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				n++
				_, _ = io.Copy(io.Discard, req.Body)
				_ = req.Body.Close()
				return nil, net.ErrClosed // which is what net/http may make of it
			})
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce, BufferBody: row.buffer}, req)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{row.want}, reasons(o))
			require.Equal(t, row.sent, n)
		})
	}
	t.Run("a body in memory of which nothing is left is not sent", func(t *testing.T) {
		req := request(t.Context(), http.MethodPut, strings.NewReader("xxx"))
		_, _ = io.Copy(io.Discard, req.Body)
		o, _, err := run(t, &retryhttp.Transport{Base: roundTripper(nil), Policy: atOnce}, req)
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"body_not_replayable/body_not_replayable"}, reasons(o))
	})
	t.Run("a GetBody that fails ends the run", func(t *testing.T) {
		for _, getBody := range []func() (io.ReadCloser, error){
			func() (io.ReadCloser, error) { return nil, errFault },
			func() (io.ReadCloser, error) { return nil, nil },
		} {
			req := put(t.Context(), strings.NewReader("x"))
			req.GetBody = getBody
			o, _, err := run(t, &retryhttp.Transport{Base: retrytest.Statuses(t, 503), Policy: atOnce}, req)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{"status_503", "body_not_replayable/body_not_replayable"}, reasons(o))
		}
	})
}

func TestUnreadStream(t *testing.T) {
	t.Run("is sent again", func(t *testing.T) {
		body := newBody("whole")
		var got []string
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if retry.AttemptNumber(req.Context()) < 3 {
				return nil, errors.Join(errFault, req.Body.Close())
			}
			return bodies(&got)(req)
		})
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, put(t.Context(), body))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, []string{"whole"}, got)
		require.Equal(t, []string{"transport_error", "transport_error", "status_503/body_not_replayable"}, reasons(o))
		require.Equal(t, int32(1), body.n.Load(), "it is closed once")
	})
	for name, base := range map[string]roundTripper{
		"has closed before it answers": func(req *http.Request) (*http.Response, error) { return answer(req, 200), req.Body.Close() },
		"keeps although it has failed": func(*http.Request) (*http.Response, error) { return nil, errFault },
	} {
		inBubble(t, "that the transport "+name+" is closed with the run", func(t *testing.T) {
			body := newBody("whole")
			_, _, _ = run(t, &retryhttp.Transport{Base: base, Policy: three}, put(t.Context(), body))
			require.Equal(t, int32(1), body.n.Load())
		})
	}
	inBubble(t, "that is closed a moment after the response is sent again", func(t *testing.T) {
		body := newBody("whole")
		var got []string
		n := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				time.AfterFunc(10*time.Millisecond, func() { _ = req.Body.Close() })
				return answer(req, 503), nil
			}
			return bodies(&got)(req)
		})
		start := time.Now()
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, put(t.Context(), body))
		require.NoError(t, err)
		require.Equal(t, []string{"whole"}, got)
		require.Equal(t, 1010*time.Millisecond, time.Since(start))
	})
	inBubble(t, "that the transport keeps is not sent again, and closed in the end", func(t *testing.T) {
		body := newBody("whole")
		var kept io.ReadCloser
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			kept = req.Body
			return answer(req, 503), nil
		})
		start := time.Now()
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, put(t.Context(), body))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, []string{"status_503/body_not_replayable"}, reasons(o))
		require.Equal(t, int32(0), body.n.Load(), "the transport may still be sending it")
		require.NoError(t, kept.Close())
		require.NoError(t, kept.Close())
		require.Equal(t, int32(1), body.n.Load())
	})
	inBubble(t, "that the transport keeps holds no caller that goes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		keeps := roundTripper(func(*http.Request) (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: errFault} })
		start := time.Now()
		_, _, err := run(t, &retryhttp.Transport{Base: keeps, Policy: three}, put(ctx, newBody("whole")))
		require.Error(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
	})
	inBubble(t, "that was read is closed as soon as the transport closes it", func(t *testing.T) {
		body := newBody("whole")
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			require.Equal(t, int32(0), body.n.Load())
			require.NoError(t, req.Body.Close())
			require.Equal(t, int32(1), body.n.Load())
			return answer(req, 200), nil
		})
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, put(t.Context(), body))
		require.NoError(t, err)
	})
	inBubble(t, "whose Read ends because the transport closes it has not failed", func(t *testing.T) {
		req := put(t.Context(), strings.NewReader(""))
		req.GetBody = func() (io.ReadCloser, error) {
			r, _ := io.Pipe()
			return r, nil
		}
		req.Body, _ = req.GetBody()
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			read := make(chan error)
			go func() {
				_, err := req.Body.Read(make([]byte, 1))
				read <- err
			}()
			spend(time.Millisecond)
			_ = req.Body.Close()
			require.ErrorIs(t, <-read, io.ErrClosedPipe)
			return nil, errFault
		})
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, req)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, []string{"transport_error", "transport_error", "transport_error"}, reasons(o))
	})
	inBubble(t, "with a Read under way when it is closed counts as read", func(t *testing.T) {
		read, write := io.Pipe()
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			go func() { _, _ = req.Body.Read(make([]byte, 1)) }()
			spend(time.Second)
			_ = req.Body.Close()
			return answer(req, 503), nil
		})
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: three}, put(t.Context(), read))
		require.NoError(t, err)
		require.Equal(t, []string{"status_503/body_not_replayable"}, reasons(o))
		_, err = write.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
	t.Run("is out of reach for the attempt that has closed it", func(t *testing.T) {
		var old []io.ReadCloser
		var got []string
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if old = append(old, req.Body); len(old) == 1 {
				return nil, errors.Join(errFault, req.Body.Close())
			}
			n, err := old[0].Read(make([]byte, 1))
			require.Zero(t, n)
			require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
			return bodies(&got)(req)
		})
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, put(t.Context(), newBody("whole")))
		require.NoError(t, err)
		require.Equal(t, []string{"whole"}, got)
	})
	t.Run("that a mark of the Base wants sent again although it was read: the run ends", func(t *testing.T) {
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return nil, retry.Transient(errFault)
		})
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, put(t.Context(), newBody("whole")))
		require.ErrorIs(t, err, retry.TerminalError)
		require.Equal(t, []string{"transport_error/body_not_replayable"}, reasons(o))
	})
	t.Run("is kept open for an attempt that has answered and still sends", func(t *testing.T) {
		read, write := io.Pipe()
		echo := roundTripper(func(req *http.Request) (*http.Response, error) { return withBody(200, req.Body)(req) })
		_, resp, err := run(t, &retryhttp.Transport{Base: echo, Policy: atOnce}, put(t.Context(), read))
		require.NoError(t, err)
		go func() {
			_, _ = write.Write([]byte("duplex"))
			_ = write.Close()
		}()
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "duplex", string(got))
		require.NoError(t, resp.Body.Close())
	})
}

// spend lets virtual time pass.
func spend(d time.Duration) { <-time.After(d) }

// slow is a body that gives a byte at each interval, n in all, and then end.
type slow struct {
	interval time.Duration
	n        int
	end      error
	closed   chan struct{}
}

func slowly(interval time.Duration, n int, end error) *slow {
	return &slow{interval, n, end, make(chan struct{})}
}

func (s *slow) Read(b []byte) (int, error) {
	if s.n == 0 {
		return 0, s.end
	}
	select {
	case <-time.After(s.interval):
	case <-s.closed:
		return 0, errors.New("closed")
	}
	s.n--
	b[0] = 'x'
	return 1, nil
}

func (s *slow) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func TestAttemptTimeout(t *testing.T) {
	limited := three
	limited.AttemptTimeout = time.Second
	inBubble(t, "is retried, and a timeout to the transport and to the caller, whatever error the transport makes of it", func(t *testing.T) {
		faults := []error{context.DeadlineExceeded, context.Canceled, errFault}
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			require.Equal(t, context.DeadlineExceeded, req.Context().Err())
			require.Equal(t, retry.ErrAttemptTimeout, context.Cause(req.Context()))
			return nil, faults[retry.AttemptNumber(req.Context())-1]
		})
		client := http.Client{Transport: &retryhttp.Transport{Base: base, Policy: limited}}
		_, err := client.Do(get(t.Context()))
		require.ErrorContains(t, err, ": retry: gave up after 3 attempts in 5s (attempts_exhausted): retryhttp: attempt timeout: fault")
		o, missing := retryhttp.OutcomeOf(nil, err)
		require.NoError(t, missing)
		require.Equal(t, []string{"attempt_timeout", "attempt_timeout", "attempt_timeout"}, reasons(o))
		for _, a := range append(o.History, retry.Attempt{Err: err}) {
			require.ErrorIs(t, a.Err, retry.ErrAttemptTimeout)
			require.ErrorIs(t, a.Err, context.DeadlineExceeded)
			require.NotErrorIs(t, a.Err, context.Canceled)
			var timeout net.Error
			require.ErrorAs(t, a.Err, &timeout)
			require.True(t, timeout.Timeout())
		}
		require.ErrorIs(t, err, errFault, "which is kept")
	})
	inBubble(t, "is not what ended an attempt whose caller had gone before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			spend(2 * time.Second)
			return nil, req.Context().Err()
		})
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: limited}, get(ctx))
		require.Equal(t, []string{"canceled"}, reasons(o))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
	})
	inBubble(t, "a response that comes too late is closed and retried", func(t *testing.T) {
		late := newBody("")
		n := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				spend(2 * time.Second)
				return withBody(200, late)(req)
			}
			return answer(req, 200), nil
		})
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: limited}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, []string{"attempt_timeout"}, reasons(o))
		require.Equal(t, int32(1), late.n.Load())
	})
	for _, row := range []struct {
		end      string
		interval time.Duration // between two bytes
		last     error
		want     error // of the last Read, nil if there is none before Close
	}{
		{"Close", time.Minute, io.EOF, nil},
		{"EOF", time.Minute, io.EOF, io.EOF},
		{"a read error", time.Minute, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"a stall", time.Hour, io.EOF, retryhttp.ErrBodyStalled},
	} {
		inBubble(t, "never cuts a body that is being read, and lives until "+row.end, func(t *testing.T) {
			var ctx context.Context
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				return withBody(200, slowly(row.interval, 10, row.last))(req)
			})
			tr := &retryhttp.Transport{Base: base, Policy: limited, StallTimeout: 2 * time.Minute}
			_, resp, err := run(t, tr, get(t.Context()))
			require.NoError(t, err)
			spend(time.Hour)
			require.NoError(t, ctx.Err())
			_, limited := ctx.Deadline()
			require.False(t, limited, "the timeout is over")
			if row.want != nil {
				for err == nil {
					_, err = resp.Body.Read(make([]byte, 1))
				}
				require.Equal(t, row.want, err)
				require.ErrorIs(t, ctx.Err(), context.Canceled)
			}
			require.NoError(t, resp.Body.Close())
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		})
	}
	inBubble(t, "leaves no context behind where there is no body", func(t *testing.T) {
		var ctx context.Context
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx = req.Context()
			return answer(req, 204), nil
		})
		_, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: limited}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, http.NoBody, resp.Body)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	})
}

// lateReader is a body each of whose Reads takes two seconds, whatever Close does.
type lateReader struct{}

func (*lateReader) Read(b []byte) (int, error) { spend(2 * time.Second); return copy(b, "late"), nil }
func (*lateReader) Close() error               { return nil }

func TestStallTimeout(t *testing.T) {
	answered := func(t *testing.T, body io.ReadCloser) io.ReadCloser {
		base := withBody(200, body)
		_, resp, err := run(t, &retryhttp.Transport{Base: base, StallTimeout: time.Second}, get(t.Context()))
		require.NoError(t, err)
		return resp.Body
	}
	inBubble(t, "lets a body be slow, and its reader too", func(t *testing.T) {
		body := answered(t, slowly(999*time.Millisecond, 3, io.EOF))
		for range 3 {
			n, err := body.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			spend(time.Hour)
		}
		_, err := body.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.NoError(t, body.Close())
	})
	inBubble(t, "ends one that stalls", func(t *testing.T) {
		start := time.Now()
		body := answered(t, slowly(1001*time.Millisecond, 100, io.EOF))
		n, err := io.Copy(io.Discard, body)
		require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err.(interface{ Timeout() bool }).Timeout())
		require.EqualError(t, err, "retryhttp: response body stalled")
		require.Zero(t, n)
		require.Equal(t, time.Second, time.Since(start))
		_, again := body.Read(make([]byte, 1))
		require.Equal(t, err, again, "it stays so")
		require.NoError(t, body.Close())
	})
	inBubble(t, "keeps what a Read returns that Close does not end, and ends the next one", func(t *testing.T) {
		body := answered(t, &lateReader{})
		b := make([]byte, 10)
		n, err := body.Read(b)
		require.NoError(t, err)
		require.Equal(t, "late", string(b[:n]))
		start := time.Now()
		_, err = body.Read(b)
		require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
		require.Equal(t, start, time.Now(), "at once")
	})
	inBubble(t, "takes an end of what was closed for no end", func(t *testing.T) {
		_, err := io.Copy(io.Discard, answered(t, endsOnClose{newPipe()}))
		require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
	})
}

// endsOnClose is a body whose Read returns io.EOF once it is closed.
type endsOnClose struct{ *pipe }

func (e endsOnClose) Read(b []byte) (int, error) {
	n, err := e.pipe.Read(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// conn is the body of a 101.
type conn struct {
	io.Reader
	bytes.Buffer
	closed bool
}

func (c *conn) Read(b []byte) (int, error) { return c.Reader.Read(b) }
func (c *conn) Close() error               { c.closed = true; return nil }

func TestWritableBodies(t *testing.T) {
	for _, row := range []struct {
		name   string
		status int
		tr     retryhttp.Transport
		same   bool
	}{
		{"a 101", 101, retryhttp.Transport{}, true},
		{"a 101 with a stall timeout", 101, retryhttp.Transport{StallTimeout: time.Second}, true},
		{"a 101 with an attempt timeout", 101, retryhttp.Transport{Policy: retry.Policy{AttemptTimeout: time.Second}}, false},
		{"a 200 of another kind", 200, retryhttp.Transport{StallTimeout: time.Second}, false},
	} {
		inBubble(t, row.name+" stays an io.ReadWriteCloser", func(t *testing.T) {
			var ctx context.Context
			c := &conn{Reader: strings.NewReader("half")}
			row.tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				return withBody(row.status, c)(req)
			})
			_, resp, err := run(t, &row.tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, row.same, resp.Body == io.ReadCloser(c))
			spend(time.Minute)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "half", string(got))
			require.NoError(t, ctx.Err(), "the other half is open still")
			_, err = resp.Body.(io.ReadWriteCloser).Write([]byte("other"))
			require.NoError(t, err)
			require.Equal(t, "other", c.String())
			require.NoError(t, resp.Body.Close())
			require.True(t, c.closed)
			require.Equal(t, row.tr.Policy.AttemptTimeout > 0, ctx.Err() != nil, "an attempt's own context ends with it")
		})
	}
}

func TestUpgradedBodyClosesOneHalf(t *testing.T) {
	upgraded := func(t *testing.T, body io.ReadCloser) io.ReadCloser {
		_, resp, err := run(t, &retryhttp.Transport{
			Policy: retry.Policy{AttemptTimeout: time.Second},
			Base:   withBody(http.StatusSwitchingProtocols, body),
		}, get(t.Context()))
		require.NoError(t, err)
		return resp.Body
	}
	inBubble(t, "if the transport's can, as a reverse proxy needs it", func(t *testing.T) {
		c := &halved{conn: conn{Reader: strings.NewReader("")}}
		body := upgraded(t, c)
		require.NoError(t, body.(interface{ CloseWrite() error }).CloseWrite())
		require.True(t, c.half)
		require.False(t, c.closed)
		require.NoError(t, body.Close())
		require.True(t, c.closed)
	})
	inBubble(t, "without the method if it cannot", func(t *testing.T) {
		body := upgraded(t, &conn{Reader: strings.NewReader("")})
		require.NotImplements(t, (*interface{ CloseWrite() error })(nil), body)
		require.NoError(t, body.Close())
	})
}

// endless is a body that never ends.
type endless struct {
	read, closed int
	closedAt     time.Time
}

func (e *endless) Read(b []byte) (int, error) { e.read += len(b); return len(b), nil }
func (e *endless) Close() error               { e.closed, e.closedAt = e.closed+1, time.Now(); return nil }

func TestDiscard(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*http.Response)
		read   int
	}{
		{"64 KiB of an HTTP/1 body are read", func(r *http.Response) { r.ContentLength = -1 }, 64 << 10},
		{"a body of known length that is longer is closed", func(r *http.Response) { r.ContentLength = 64<<10 + 1 }, 0},
		{"an HTTP/2 body is closed", func(r *http.Response) { r.ProtoMajor = 2 }, 0},
		{"an upgraded connection is closed", func(r *http.Response) { r.StatusCode = 101 }, 0},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var all []*endless
			start := time.Now()
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				all = append(all, &endless{})
				resp := answer(req, 503)
				resp.Body = all[len(all)-1]
				row.change(resp)
				return resp, nil
			})
			p := three
			p.Classify = retry.Otherwise(retry.Retryable)
			refuse := func(*http.Response) bool { return false }
			_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p, Accept: refuse}, get(t.Context()))
			require.NoError(t, err)
			require.Len(t, all, 3)
			for i, body := range all {
				if i == 2 {
					require.Equal(t, endless{}, *body, "the last response is the caller's")
					continue
				}
				require.LessOrEqual(t, body.read, row.read+8<<10)
				require.GreaterOrEqual(t, body.read, row.read)
				require.Equal(t, 1, body.closed)
				require.Equal(t, start.Add(time.Duration(i)*three.Base), body.closedAt, "before the wait")
			}
		})
	}
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, time.Second} {
		inBubble(t, "a body that stalls is read for 100ms before a wait of "+delay.String(), func(t *testing.T) {
			n := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return withBody(503, slowly(time.Hour, 1, io.EOF))(req)
				}
				return answer(req, 503), nil
			})
			p := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{delay}}}
			start := time.Now()
			_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, delay+100*time.Millisecond, time.Since(start))
		})
	}
	for _, row := range []struct {
		name          string
		deadline, ttl time.Duration
		retries       int // the last of which reading for 100ms would make too late
	}{
		{"the deadline of retry 1", 1050 * time.Millisecond, 0, 1},
		{"the deadline of retry 2", 2150 * time.Millisecond, 0, 2},
		{"the TTL of retry 1", 0, 1050 * time.Millisecond, 1},
		{"the TTL of retry 2", 0, 2150 * time.Millisecond, 2},
	} {
		inBubble(t, "a body is closed at once if reading it would not leave time before "+row.name, func(t *testing.T) {
			ctx := t.Context()
			if row.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			n := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				if n++; n <= row.retries {
					return withBody(503, slowly(time.Hour, 1, io.EOF))(req)
				}
				return answer(req, 503), nil
			})
			p := three
			p.MaxAttempts, p.TTL = row.retries+1, row.ttl
			start := time.Now()
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(ctx))
			require.NoError(t, err)
			require.Equal(t, retry.AttemptsExhausted, o.Reason)
			require.Equal(t, time.Duration(row.retries)*time.Second+time.Duration(row.retries-1)*100*time.Millisecond, time.Since(start))
		})
	}
}

func TestTheCallersRequestIsNotChanged(t *testing.T) {
	body := newBody("stream")
	req := request(t.Context(), http.MethodPost, body)
	req.Header.Set("Accept", "text/plain")
	req.Host, req.ContentLength, req.Trailer = "other.example", -1, http.Header{"X-Sum": {"1"}}
	req.TransferEncoding = []string{"chunked"}
	before, header, trailer, target := *req, req.Header.Clone(), req.Trailer.Clone(), *req.URL
	p := atOnce
	p.AttemptTimeout = time.Minute
	tr := &retryhttp.Transport{Base: retrytest.Statuses(t, 503, 200), Policy: p, IdempotencyKey: retryhttp.RandomKey,
		AttemptHeader: retryhttp.AttemptHeader, BufferBody: 10}
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Same(t, req, resp.Request)
	require.Equal(t, []any{header, trailer, target}, []any{req.Header, req.Trailer, *req.URL})
	require.Nil(t, req.GetBody)
	require.Equal(t, before, *req)
	require.Equal(t, int32(1), body.n.Load(), "its body is closed once")

	unknown := request(t.Context(), http.MethodPost, newBody("stream")) // of a length that BufferBody finds out
	before = *unknown
	tr.Base = retrytest.Statuses(t, 200)
	_, err = tr.RoundTrip(unknown)
	require.NoError(t, err)
	require.Equal(t, before, *unknown)
}

// pipe is a body whose Read waits for Close, which it counts.
type pipe struct {
	*io.PipeReader
	closed atomic.Int32
}

func newPipe() *pipe {
	read, _ := io.Pipe()
	return &pipe{PipeReader: read}
}

func (p *pipe) Close() error {
	p.closed.Add(1)
	return p.PipeReader.Close()
}

// What a second Close does is undefined (io.Closer).
func TestABodyIsClosedOnce(t *testing.T) {
	inBubble(t, "a response that stalls while it is given up", func(t *testing.T) {
		body := newPipe()
		n := 0
		stalls := roundTripper(func(req *http.Request) (*http.Response, error) {
			if n++; n > 1 {
				return answer(req, 200), nil
			}
			return withBody(503, body)(req)
		})
		_, resp, err := run(t, &retryhttp.Transport{Base: stalls, Policy: atOnce}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		synctest.Wait()
		require.Equal(t, int32(1), body.closed.Load())
	})
	inBubble(t, "a response that stalls while it is read", func(t *testing.T) {
		body := newPipe()
		base := withBody(200, body)
		_, resp, err := run(t, &retryhttp.Transport{Base: base, StallTimeout: time.Second}, get(t.Context()))
		require.NoError(t, err)
		_, err = resp.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, retryhttp.ErrBodyStalled)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, resp.Body.Close())
		require.Equal(t, int32(1), body.closed.Load())
	})
	t.Run("a request's body, if Base panics", func(t *testing.T) {
		body := newBody("order")
		req := put(t.Context(), body)
		req.GetBody = func() (io.ReadCloser, error) { return newBody("order"), nil }
		panics := roundTripper(func(*http.Request) (*http.Response, error) { panic("boom") })
		require.PanicsWithValue(t, "boom", func() { _, _ = (&retryhttp.Transport{Base: panics}).RoundTrip(req) })
		require.Equal(t, int32(1), body.n.Load())
	})
	for name, streamed := range map[string]bool{"a stream": true, "one with GetBody": false} {
		t.Run("a request's body that Base closes twice: "+name, func(t *testing.T) {
			body := newBody("order")
			req := put(t.Context(), body)
			if !streamed {
				req.GetBody = func() (io.ReadCloser, error) { return body, nil }
			}
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, req.Body)
				require.NoError(t, req.Body.Close())
				require.NoError(t, req.Body.Close())
				return answer(req, 200), nil
			})
			_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, req)
			require.NoError(t, err)
			require.Equal(t, int32(1), body.n.Load())
		})
	}
}

// A goroutine that is left would make the bubble panic.
func TestABufferedBodyThatPanicsLeavesNoGoroutine(t *testing.T) {
	for name, end := range map[string]func(){"panics": func() { panic("boom") }, "exits": runtime.Goexit} {
		inBubble(t, name, func(t *testing.T) {
			client := &http.Client{Transport: &retryhttp.Transport{Base: always(200), BufferBody: 10}, Timeout: time.Minute}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_, _ = client.Do(put(t.Context(), readFunc(func([]byte) (int, error) { end(); return 0, io.EOF })))
			}()
			<-done
			time.Sleep(time.Hour) // net/http's own goroutine ends with the Timeout
		})
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// halved is a conn whose writing half can be closed alone.
type halved struct {
	conn
	half bool
}

func (h *halved) CloseWrite() error { h.half = true; return nil }
