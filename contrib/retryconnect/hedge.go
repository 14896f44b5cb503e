package retryconnect

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryhedge"
)

// NewHedgeInterceptor returns an interceptor for clients that makes a unary call that is slow a second time beside the
// first, as h says (see retryhedge.Policy), if its procedure is idempotent by its schema or by o. Streams, handlers and
// other calls pass through. In the list of connect.WithInterceptors it comes after the interceptor of retries, so that
// each attempt is hedged and its timeout covers all calls. h.Budget is then that of the retries, with h.InRun.
//
// The codes are judged as in an attempt, h.Classify first. A failure that would be repeated waits for the other call, an
// answer and any other failure end both. A pushback that forbids a retry ends both, and a hint delays the next hedge. The
// call returns the response or connect's own error of the call that has won, so header and message are of one call. All
// calls carry the same grpc-previous-rpc-attempts.
//
// A call whose context has a connect.CallInfo is not hedged, since connect writes the header of each call that it sends
// there, and an interceptor cannot set that of the call that has won.
//
// Over HTTP/2 a client sends all calls for a host on one connection, so that a hedge does not help against a slow
// connection. Of o, only Idempotent and RetryCodes are used. The error names every bad field of h and o.
func NewHedgeInterceptor(h retryhedge.Policy, o Options) (connect.Interceptor, error) {
	l, err := retryrpc.NewLayer(retry.Policy{Classify: h.Classify}, Options{Idempotent: o.Idempotent, RetryCodes: o.RetryCodes}, retryrpc.Errors{})
	var bad retry.FieldErrors
	bad.Append(h.Validate())
	bad.Append(err)
	if bad != nil {
		return nil, bad
	}
	var judged retryrpc.Call
	_ = l.Begin(context.Background(), &judged) // its policy has been validated
	h.Classify = judged.Policy.Classify        // the layer's decision about an attempt
	infoKeys := callInfoKeys()
	hedges := func(ctx context.Context, spec connect.Spec) bool {
		hasInfo := slices.ContainsFunc(infoKeys, func(key any) bool { return ctx.Value(key) != nil })
		if !spec.IsClient || h.Off() || hasInfo {
			return false
		}
		return isIdempotent(l, spec)
	}
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			spec := req.Spec()
			if !hedges(ctx, spec) {
				return next(ctx, req)
			}
			message := unwrapped(req)
			won, err := retryhedge.DoValue(ctx, h, func(ctx context.Context) (*hedge, error) {
				var c retryrpc.Call
				c.Method, c.Idempotent = spec.Procedure, true
				_ = l.Begin(ctx, &c)
				one := new(hedge)
				if one.resp, one.err = next(ctx, &attempt{AnyRequest: another(message), header: req.Header().Clone()}); one.err == nil {
					return one, nil
				}
				return one, c.Failed(ctx, failureOf(one.err))
			}, nil)
			if won == nil {
				return nil, err
			}
			return won.resp, won.err
		}
	}), nil
}

type hedge struct {
	resp connect.AnyResponse
	err  error // connect's own
}

// unwrapped returns the request in an attempt of this package, whose message may now be sent.
func unwrapped(req connect.AnyRequest) connect.AnyRequest {
	if outer, ok := req.(*attempt); ok {
		outer.read = true
		return outer.AnyRequest
	}
	return req
}

// another returns a copy of a request for one of its calls, because connect writes into it. An interceptor's own type
// around a request is not copied.
func another(req connect.AnyRequest) connect.AnyRequest {
	v := reflect.ValueOf(req)
	if v.Kind() != reflect.Pointer {
		return req
	}
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(v.Elem())
	return copied.Interface().(connect.AnyRequest)
}

// callInfoKeys returns the keys under which connect looks for a client's CallInfo in a context. They have no exported
// name, so it lets connect look in a context that notes them.
func callInfoKeys() []any {
	noted := &noting{Context: context.Background()}
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](unreachable{}, "http://retryconnect.invalid/s/m")
	_, _ = client.CallUnary(noted, connect.NewRequest(&wrapperspb.StringValue{}))
	return noted.keys
}

type noting struct {
	context.Context
	keys []any
}

func (n *noting) Value(key any) any {
	if reflect.TypeOf(key).PkgPath() == reflect.TypeFor[connect.Code]().PkgPath() && !slices.Contains(n.keys, key) {
		n.keys = append(n.keys, key)
	}
	return nil
}

type unreachable struct{}

func (unreachable) Do(*http.Request) (*http.Response, error) { return nil, errors.New("not sent") }
