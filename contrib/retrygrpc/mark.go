package retrygrpc

import "context"

// Mark returns ctx with the mark of a layer that repeats what is done under it. Under a marked context the interceptors
// of this package make one attempt and pass the call through, so that layers do not multiply: 3 layers of 4 attempts would
// be 64 calls. The contexts of an interceptor's own attempts are marked.
//
// Use it in a retry.Do around calls whose channel has an interceptor, where the outer run is the one that is to repeat:
//
//	retry.Do(ctx, p, func(ctx context.Context) error { return both(retrygrpc.Mark(ctx)) })
//
// A retry.Do does not mark by itself: a deferred retry, hours later, may well want quick retries inside. A nil ctx counts
// as context.Background().
func Mark(ctx context.Context) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, markKey{}, true)
}

// Marked reports whether ctx is, or descends from, a context that Mark has returned: some layer above repeats already. A
// nil ctx is not marked.
func Marked(ctx context.Context) bool { return ctx != nil && ctx.Value(markKey{}) != nil }

type markKey struct{}
