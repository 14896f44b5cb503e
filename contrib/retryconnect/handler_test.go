package retryconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

func anyone(connect.Peer, http.Header) bool { return true }

func TestLayers(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for _, row := range []struct {
			name   string
			trust  func(connect.Peer, http.Header) bool
			pass   bool
			silent bool
			want   int
		}{
			{name: "layers that know nothing of each other multiply", silent: true, want: 64},
			{name: "layers stop at an answer that a layer below has given up", want: 4},
			{name: "layers that believe calls repeat at the top", trust: anyone, pass: true, silent: true, want: 10},
			{name: "layers that keep the number to themselves repeat below", trust: anyone, silent: true, want: 19},
			{name: "layers that do not believe calls multiply", pass: true, silent: true, want: 64},
		} {
			for _, streams := range []bool{false, true} {
				o, calls := retryconnect.Options{PassAttempt: row.pass}, 0
				next := func(context.Context) error {
					calls++
					return connect.NewError(connect.CodeUnavailable, errors.New("no"))
				}
				for range 3 {
					s := answers(next)
					s.layer = retryconnect.NewHandlerInterceptor(row.trust)
					unary, stream := s.start(t, protocol, upTo(4), o)
					call := pings(unary)
					if streams {
						call = reads(stream)
					}
					next = func(ctx context.Context) error {
						err := call(ctx)
						if row.silent {
							err = connect.NewError(connect.CodeOf(err), errors.New("silent"))
						}
						return err
					}
				}
				err := next(t.Context())
				require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err), row.name)
				require.Equal(t, row.want, calls, row.name)
				require.Equal(t, !row.silent, retry.IsGivenUp(err), row.name)
			}
		}
	})
}

func TestAHandlerSaysWhatItHasGivenUp(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		no := errors.New("no")
		shared := connect.NewError(connect.CodeUnavailable, retry.Permanent(no))
		shared.Meta().Set("X-Own", "kept")
		for _, row := range []struct {
			err  error
			code connect.Code
			want []string
		}{
			{connect.NewError(connect.CodeUnavailable, no), connect.CodeUnavailable, nil},
			{retry.Permanent(no), connect.CodeUnknown, []string{"-1"}},
			{connect.NewError(connect.CodeUnavailable, retry.After(1500*time.Microsecond, no)), connect.CodeUnavailable, []string{"2"}},
			{fmt.Errorf("load: %w", shared), connect.CodeUnavailable, []string{"-1"}},
		} {
			s := answers(func(context.Context) error { return row.err })
			s.layer = retryconnect.NewHandlerInterceptor(nil)
			unary, _ := s.start(t, protocol, retry.Policy{Disabled: true}, retryconnect.Options{})
			_, err := ping(t.Context(), unary)
			require.Equal(t, row.code, connect.CodeOf(err))
			var failed *connect.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, row.want, failed.Meta().Values("grpc-retry-pushback-ms"))
		}
		require.Equal(t, http.Header{"X-Own": {"kept"}}, shared.Meta(), "an error that is shared stays as it is")
	})
}

// The metadata of a service below is for the handler alone, as in connect itself.
func TestAHandlerDoesNotPassOnTheMetadataOfAnotherServer(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		below := &server{unary: func(context.Context, int, *request) (string, error) {
			err := connect.NewError(connect.CodeUnavailable, errors.New("no"))
			err.Meta().Set("X-Below", "secret")
			return "", err
		}}
		call, _ := below.start(t, protocol, upTo(2), retryconnect.Options{})
		s := &server{layer: retryconnect.NewHandlerInterceptor(nil)}
		s.unary = func(ctx context.Context, _ int, _ *request) (string, error) { return ping(ctx, call) }
		unary, _ := s.start(t, protocol, retry.Policy{Disabled: true}, retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		failed, ok := errors.AsType[*connect.Error](err)
		require.True(t, ok)
		require.Equal(t, []string{"-1"}, failed.Meta().Values("Grpc-Retry-Pushback-Ms"))
		require.Empty(t, failed.Meta().Values("X-Below"))
	})
}

// What a handler knows of its own retries stays in the server.
func TestAClientGetsNothingOfARun(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		secret := errors.New("password hunter2")
		p := retry.Policy{Name: "charge-cards", MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}
		run := func(err error) error { return retry.Do(t.Context(), p, func(context.Context) error { return err }) }
		for _, row := range []struct {
			err  error
			want string
		}{
			{run(secret), "unavailable: the service is unavailable"},
			{nil, ""},
			{fmt.Errorf("hunter2: %w", run(secret)), "unavailable: the service is unavailable"},
			{run(context.DeadlineExceeded), "deadline_exceeded: context deadline exceeded"},
			{run(fmt.Errorf("hunter2: %w", connect.NewError(connect.CodeNotFound, errors.New("none")))), "not_found: none"},
			{errors.New("plain"), "unknown: plain"},
		} {
			s := answers(func(context.Context) error { return row.err })
			s.layer = retryconnect.NewHandlerInterceptor(nil)
			unary, stream := s.start(t, protocol, retry.Policy{Disabled: true}, retryconnect.Options{})
			for _, err := range []error{pings(unary)(t.Context()), reads(stream)(t.Context())} {
				if row.want == "" {
					require.NoError(t, err)
					continue
				}
				failed, ok := errors.AsType[*connect.Error](err)
				require.True(t, ok)
				require.EqualError(t, failed, row.want)
			}
		}
	})
}

func TestANestedCallCountsItsOwnAttempts(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := fails(connect.CodeUnavailable)
		unary, stream := s.start(t, protocol, retry.Policy{Disabled: true}, retryconnect.Options{})
		_ = retry.Do(t.Context(), upTo(2), func(ctx context.Context) error {
			return errors.Join(pings(unary)(ctx), reads(stream)(ctx))
		})
		require.Len(t, s.headers, 4)
		for _, header := range s.headers {
			require.Empty(t, header.Values("Grpc-Previous-Rpc-Attempts"))
		}
	})
}

func ExampleNewHandlerInterceptor() {
	query := func(ctx context.Context) error { // retries by itself
		p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}}
		return retry.Do(ctx, p, func(context.Context) error { return errors.New("the database is down") })
	}
	handler := connect.NewUnaryHandler("/shop.Orders/Get", func(ctx context.Context, _ *request) (*response, error) {
		return nil, connect.NewError(connect.CodeUnavailable, query(ctx))
	}, connect.WithInterceptors(retryconnect.NewHandlerInterceptor(nil)))
	orders := httptest.NewServer(handler)
	defer orders.Close()

	client := connect.NewClient[text, text](http.DefaultClient, orders.URL+"/shop.Orders/Get")
	_, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("42")))
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		fmt.Println(failed.Code(), failed.Meta().Get("grpc-retry-pushback-ms"))
	}
	// Output: unavailable -1
}
