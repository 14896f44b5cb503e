package retryconnect

import (
	"context"
	"reflect"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryhedge"
)

// NewHedgeInterceptor returns an interceptor for clients that makes a unary call that is slow a second time beside the
// first, as h says (see retryhedge.Policy), if its procedure is idempotent by its schema or by o. Streams, handlers and
// other calls pass through. In the list of connect.WithInterceptors it comes after the interceptor of retries, so that
// each attempt is hedged and its timeout covers all calls; h.Budget is then that of the retries, with h.InRun.
//
// The codes are judged as in an attempt, h.Classify first: a failure that would be repeated waits for the other call, an
// answer and any other failure end both. A pushback that forbids a retry ends both, and a hint delays the next hedge. The
// call returns the response or connect's own error of the call that has won; a connect.CallInfo in the caller's context is
// that of the first. All calls carry the same grpc-previous-rpc-attempts.
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
	h.Classify = judged.Policy.Classify        // what the layer has decided about an attempt
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			spec := req.Spec()
			if !spec.IsClient || h.Off() || spec.IdempotencyLevel == connect.IdempotencyUnknown && !l.Idempotent(spec.Procedure) {
				return next(ctx, req)
			}
			won, err := retryhedge.DoValue(ctx, h, func(ctx context.Context) (*hedge, error) {
				own := ctx
				if retryhedge.IsHedge(ctx) {
					own = apart{ctx}
				}
				var c retryrpc.Call
				c.Method, c.Idempotent = spec.Procedure, true
				_ = l.Begin(ctx, &c)
				one := new(hedge)
				if one.resp, one.err = next(own, another(req)); one.err == nil {
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

// another returns a copy of a request for one of its calls, because connect writes into it. An interceptor's own type
// around a request is not copied, only its header.
func another(req connect.AnyRequest) connect.AnyRequest {
	header := req.Header().Clone()
	if outer, ok := req.(attempt); ok {
		req = outer.AnyRequest
	}
	if v := reflect.ValueOf(req); v.Kind() == reflect.Pointer {
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		req = copied.Interface().(connect.AnyRequest)
	}
	return attempt{req, header}
}

// apart is the context of a hedge without connect's own values: connect writes into the caller's CallInfo.
type apart struct{ context.Context }

func (a apart) Value(key any) any {
	if t := reflect.TypeOf(key); t != nil && t.PkgPath() == reflect.TypeFor[connect.Code]().PkgPath() {
		return nil
	}
	return a.Context.Value(key)
}
