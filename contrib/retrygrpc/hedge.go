package retrygrpc

import (
	"context"
	"reflect"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryhedge"
)

// HedgeUnaryClientInterceptor returns an interceptor that makes a unary call that is slow a second time beside the first,
// as h says (see retryhedge.Policy), if its method is idempotent by o or by the option Idempotent. Streams and other
// calls pass through. In the chain it comes after the interceptor of retries, so that each attempt is hedged and its
// timeout covers all calls. h.Budget is then that of the retries, with h.InRun.
//
// The codes are judged as in an attempt, h.Classify first. A failure that would be repeated waits for the other call, an
// answer and any other failure end both. A pushback that forbids a retry ends both, one that asks for time delays the
// next hedge. The reply, the caller's grpc.Header, grpc.Trailer and grpc.Peer options and the error are those of the
// call that has won. grpc.OnFinish is called once. All calls carry the same grpc-previous-rpc-attempts.
//
// One channel sends all calls to the same pick_first server on one connection, so that a hedge does not help against a
// slow connection. It needs round_robin, or several channels. Of o, only Idempotent and RetryCodes are used. The error
// names every bad field of h and o.
func HedgeUnaryClientInterceptor(h retryhedge.Policy, o Options) (grpc.UnaryClientInterceptor, error) {
	l, err := newLayer(retry.Policy{Classify: h.Classify}, Options{Idempotent: o.Idempotent, RetryCodes: o.RetryCodes})
	var bad retry.FieldErrors
	bad.Append(h.Validate())
	bad.Append(err)
	if bad != nil {
		return nil, bad
	}
	var judged retryrpc.Call
	_ = l.Begin(context.Background(), &judged) // its policy has been validated
	h.Classify = judged.Policy.Classify        // the layer's decision about an attempt
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if h.Off() || !l.isIdempotent(method, opts) {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		g := hedged{reply: reply}
		rest := g.split(nil, opts)
		empty := emptyLike(reply)
		won, err := retryhedge.DoValue(ctx, h, func(ctx context.Context) (*hedge, error) {
			one := &hedge{reply: reply}
			if retryhedge.IsHedge(ctx) {
				one.reply = empty()
			}
			c := call{Call: retryrpc.Call{Method: method, Idempotent: true}}
			_ = l.Begin(ctx, &c.Call)
			opts := append(slices.Clip(rest), grpc.Header(&one.header), grpc.Trailer(&one.trailer), grpc.Peer(&one.peer))
			if one.err = invoker(ctx, method, req, one.reply, cc, opts...); one.err == nil {
				return one, nil
			}
			return one, c.failed(ctx, one.err, one.trailer, retryrpc.Failure{
				Begun: one.header != nil, Unsent: one.header == nil && one.trailer == nil,
			})
		}, nil)
		if won != nil {
			g.deliver(won)
			err = won.err
		}
		g.finish(err)
		return err
	}, nil
}

// hedged is a call that can have hedges, and hedge is one of its calls.
type hedged struct {
	call  // for the caller's options
	reply any
}

type hedge struct {
	reply           any
	header, trailer metadata.MD
	peer            peer.Peer
	err             error // gRPC's own
}

// deliver hands the results of the call that has won to the caller.
func (g *hedged) deliver(won *hedge) {
	if won.reply != g.reply {
		reset(g.reply)
		if to, ok := g.reply.(proto.Message); ok {
			proto.Merge(to, won.reply.(proto.Message))
		} else {
			reflect.ValueOf(g.reply).Elem().Set(reflect.ValueOf(won.reply).Elem())
		}
	}
	g.report(won.header, won.trailer, &won.peer)
}

// emptyLike returns a function that makes empty messages of the type of one. It does not read one, which the first call
// fills while hedges are made.
func emptyLike(one any) func() any {
	if m, ok := one.(proto.Message); ok {
		kind := m.ProtoReflect().Type()
		return func() any { return kind.New().Interface() }
	}
	if t := reflect.TypeOf(one); t != nil && t.Kind() == reflect.Pointer {
		return func() any { return reflect.New(t.Elem()).Interface() }
	}
	return func() any { return one }
}
