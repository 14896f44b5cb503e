package retrygrpc

import (
	"math"
	"sync"

	"github.com/retrygo/retry"
)

const (
	mostTokens  = 1000 // gRFC A6: maxTokens is in (0, 1000]
	mostTargets = 1024
)

// Throttle bounds retries by the arithmetic of gRPC's service config (gRFC A6, "Throttling Retry Attempts and Hedged
// RPCs"), separately for each target:
//
//   - a target begins with maxTokens tokens and never has more;
//   - a retryable failure takes one, even if no attempt is left, and so does a pushback that forbids the retry; the
//     number is never below 0;
//   - a call that ends with OK adds tokenRatio;
//   - a call that ends with a code that is not retryable changes nothing, as in grpc-go, even if it is an answer such
//     as NOT_FOUND, which makes the run a success and funds Policy.Budget;
//   - a retry is made only if more than half of maxTokens are left after that. Otherwise the run ends as
//     DeadLettered(BudgetExhausted).
//
// Unlike a retry.Budget, it is a switch: retries are free until the share of failed attempts stays above
// tokenRatio/(1+tokenRatio), and then stop. Attempts that grpc-go itself repeats because no server has seen them do not
// count, and neither do calls that pass through.
//
// It keeps the tokens of up to 1024 targets that have less than maxTokens; further targets share one count.
//
// A Throttle is safe for concurrent use. The zero Throttle refuses every retry: use NewThrottle. A nil *Throttle does
// not limit retries.
type Throttle struct {
	most, ratio int64 // thousandths of a token

	mu       sync.Mutex
	targets  map[string]*tokens
	overflow *tokens // of all targets beyond mostTargets
}

// tokens are the tokens of one target, in thousandths.
type tokens struct{ level int64 }

// NewThrottle returns a Throttle with maxTokens, from 1 to 1000, and tokenRatio, above 0 and kept to three decimals, as
// gRPC does. Anything else is an error. gRFC A6's example is 10 and 0.1.
func NewThrottle(maxTokens int, tokenRatio float64) (*Throttle, error) {
	var bad retry.FieldErrors
	if maxTokens < 1 || maxTokens > mostTokens {
		bad.Add("retrygrpc", "maxTokens", maxTokens, "is outside 1 to", mostTokens)
	}
	if !(tokenRatio >= 0.001) || math.IsInf(tokenRatio, 1) {
		bad.Add("retrygrpc", "tokenRatio", tokenRatio, "is not a number of at least 0.001")
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	most := int64(maxTokens) * 1000
	ratio := most // one success fills the bucket
	if tokenRatio < float64(maxTokens) {
		ratio = int64(tokenRatio*1000 + 1e-6) // truncated, as gRFC A6 says, but 0.29 must not become 0.289
	}
	return &Throttle{most: most, ratio: ratio}, nil
}

// Tokens returns the number of tokens of the target, from 0 to maxTokens. The target is that of grpc.ClientConn.Target.
// A nil Throttle returns +Inf.
func (t *Throttle) Tokens(target string) float64 {
	if t == nil {
		return math.Inf(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return float64(t.of(target).level) / 1000
}

// fail takes a token for a failure and reports whether a retry may follow.
func (t *Throttle) fail(target string) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of(target)
	found.level = max(found.level-1000, 0)
	return 2*found.level > t.most
}

// succeed adds tokenRatio for an OK.
func (t *Throttle) succeed(target string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of(target)
	found.level = min(found.level+t.ratio, t.most)
}

// of returns the tokens of a target. Beyond mostTargets full counts are dropped, which loses nothing. If there are
// none, new targets share one count.
func (t *Throttle) of(target string) *tokens {
	found, ok := t.targets[target]
	if ok {
		return found
	}
	if len(t.targets) >= mostTargets {
		for key, other := range t.targets {
			if other.level == t.most {
				delete(t.targets, key)
			}
		}
	}
	if len(t.targets) >= mostTargets {
		if t.overflow == nil {
			t.overflow = &tokens{t.most}
		}
		return t.overflow
	}
	if t.targets == nil {
		t.targets = make(map[string]*tokens)
	}
	found = &tokens{t.most}
	t.targets[target] = found
	return found
}
