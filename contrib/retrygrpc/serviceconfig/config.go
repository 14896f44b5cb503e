// Package serviceconfig converts a retry.Policy to a gRPC service config, for the retries of grpc-go itself or of
// another gRPC client, in place of the interceptors of package retrygrpc.
//
// This package may change until it says otherwise.
package serviceconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryexport"
	"github.com/retrygo/retry/retryrpc"
)

// Options are the parts of a gRPC service config that a retry.Policy does not have. The zero Options are for all
// methods of a client, and retry only UNAVAILABLE.
type Options struct {
	// Methods are the methods of the config, each as "/package.Service/Method", which is the form of the generated
	// FullMethodName constants, or "/package.Service/" for all methods of a service, in valid UTF-8. Nil means all
	// methods of the client.
	Methods []string
	// Codes are the status codes that are retried; OK is refused. Nil means UNAVAILABLE and, if the policy has a
	// Classify, the codes of its verdicts on a bare status: Retryable adds the code, Terminal removes it.
	Codes []codes.Code
	// Timeout is the deadline of a whole call, including all attempts and waits; a shorter deadline of the caller takes
	// precedence. Zero means none.
	Timeout time.Duration
	// Budget becomes retryThrottling, which all methods of the client share. Nil means none.
	Budget *retry.BudgetConfig
}

const (
	mostAttempts = 5    // gRFC A6: a client treats a larger maxAttempts as 5
	mostTokens   = 1000 // gRFC A6: maxTokens is in (0, 1000]
	// gRFC A6, "Exponential Backoff": random(0.8, 1.2) after the bound.
	jitterRatio = 0.2
	// grpc-go converts 1.2·maxBackoff to an integer without a check, so a wait above 243 years would turn negative.
	longestBackoff = 200 * 365 * 24 * time.Hour
)

// Of returns p as a gRPC service config in JSON, for grpc.WithDefaultServiceConfig or a name resolver, so that grpc-go
// or another gRPC client retries by itself. Use it instead of the interceptors, not with them: two layers multiply.
//
// lost names what a service config cannot express: one line for each field, in the order of the fields of Policy and
// then for Options.Budget, with the field, its value and what happens instead. It is never empty if a wait or the number
// of attempts may differ from p's. It describes grpc-go 1.85 without grpc.WithMaxCallAttempts; other clients may have
// another jitter.
//
// The waits are min(initialBackoff·backoffMultiplier^(n−1), maxBackoff) with gRPC's own jitter. If p's waits are not of
// that form, the first and the last wait are p's and those between are a geometric series; lost has the figures.
//
// lost omits what gRPC does under every service config: it retries only until response headers arrive; it sends a call
// that the server has not processed again at once, in addition to maxAttempts; it waits for exactly a server's
// pushback, however long, restarts the backoff after it and stops at a negative one; it ignores RetryInfo; its errors
// are its own, not *retry.Error; marks such as retry.Permanent are not sent.
//
// The zero Policy is that of retry.Do, with 5s and more between attempts: pass retry.Inline() for the schedule of the
// interceptors. Errors are those of p.Validate and o.Validate.
func Of(p retry.Policy, o Options) (config string, lost []string, err error) {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	bad.Append(o.Validate())
	if err := bad.Err(); err != nil {
		return "", nil, err
	}
	x := newExport(p, o)
	return o.config(x.retryPolicy(), nil), x.lost(), nil
}

// config returns the JSON with one of the policies, or none.
func (o *Options) config(retries *retryPolicy, hedges *hedgingPolicy) string {
	method := methodConfig{Name: o.names(), RetryPolicy: retries, HedgingPolicy: hedges}
	if o.Timeout > 0 {
		method.Timeout = seconds(o.Timeout)
	}
	text, _ := json.Marshal(serviceConfig{[]methodConfig{method}, o.throttling()}) // nothing in it can fail
	return string(text)
}

// The wire form: service_config.proto in the JSON of protocol buffers.
type (
	serviceConfig struct {
		MethodConfig    []methodConfig   `json:"methodConfig"`
		RetryThrottling *retryThrottling `json:"retryThrottling,omitempty"`
	}
	methodConfig struct {
		Name          []methodName   `json:"name"`
		Timeout       string         `json:"timeout,omitempty"`
		RetryPolicy   *retryPolicy   `json:"retryPolicy,omitempty"`
		HedgingPolicy *hedgingPolicy `json:"hedgingPolicy,omitempty"`
	}
	methodName struct {
		Service string `json:"service,omitempty"`
		Method  string `json:"method,omitempty"`
	}
	retryPolicy struct {
		MaxAttempts          int      `json:"maxAttempts"`
		InitialBackoff       string   `json:"initialBackoff"`
		MaxBackoff           string   `json:"maxBackoff"`
		BackoffMultiplier    float64  `json:"backoffMultiplier"`
		RetryableStatusCodes []string `json:"retryableStatusCodes"`
	}
	retryThrottling struct {
		MaxTokens  int     `json:"maxTokens"`
		TokenRatio float64 `json:"tokenRatio"`
	}
)

// Validate returns nil or retry.FieldErrors with every bad field.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	add := func(field string, value any, rule string) {
		bad.Refuse("serviceconfig.Options."+field, value, rule)
	}
	named := make(map[methodName]bool)
	for i, full := range o.Methods {
		field, value := fmt.Sprintf("Methods[%d]", i), strconv.Quote(full)
		switch name, ok := nameOf(full); {
		case !ok:
			add(field, value, "is not of the form /package.Service/Method or /package.Service/")
		case named[name]:
			add(field, value, "is named twice")
		default:
			named[name] = true
		}
	}
	for i, code := range o.Codes {
		if code == codes.OK || code > codes.Unauthenticated {
			add(fmt.Sprintf("Codes[%d]", i), code, "is not the code of an error")
		}
	}
	if o.Timeout < 0 {
		add("Timeout", o.Timeout, "is negative")
	}
	return bad.Err()
}

// names returns the methods, or the empty name, which means all of them.
func (o *Options) names() []methodName {
	if len(o.Methods) == 0 {
		return []methodName{{}}
	}
	names := make([]methodName, len(o.Methods))
	for i, full := range o.Methods {
		names[i], _ = nameOf(full)
	}
	return names
}

// nameOf splits "/package.Service/Method", and reports whether full has that form, in UTF-8. A service without a method
// has an empty method.
func nameOf(full string) (methodName, bool) {
	parts := strings.Split(full, "/")
	if len(parts) != 3 || parts[0] != "" || parts[1] == "" || !utf8.ValidString(full) {
		return methodName{}, false
	}
	return methodName{parts[1], parts[2]}, true
}

type export struct {
	policy   retry.Policy
	inForce  retry.Policy // policy with its defaults written out
	options  Options
	attempts int // that gRPC makes; 1 without a retryPolicy
	codes    []codes.Code
	series   retryexport.Series
	exact    bool // whether series gives the policy's own delays
}

func newExport(p retry.Policy, o Options) *export {
	x := &export{policy: p, inForce: p.Effective(), options: o, codes: retried(p.Classify, o.Codes)}
	switch most := x.inForce.MaxAttempts; {
	case p.Disabled, len(x.codes) == 0: // a retryPolicy has at least one code
		x.attempts = 1
	case most == retry.Unlimited:
		x.attempts = mostAttempts
	default:
		x.attempts = min(most, mostAttempts)
	}
	if x.attempts > 1 {
		x.series, x.exact = retryexport.SeriesOf(p.Backoff, x.attempts-1, func(s *retryexport.Series) {
			s.Top = min(s.Top, longestBackoff)
			s.First = min(s.First, s.Top)
		})
	}
	return x
}

// retried returns the codes that are retried, in the order of their numbers.
func retried(classify retry.Classifier, chosen []codes.Code) []codes.Code {
	if len(chosen) > 0 {
		sorted := slices.Clone(chosen)
		slices.Sort(sorted)
		return slices.Compact(sorted)
	}
	var all []codes.Code
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		class := retry.Unknown
		if classify != nil {
			class = classify(status.Error(code, ""))
		}
		// UNAVAILABLE is the only code that AIP-194 lets a client retry by default.
		if class == retry.Retryable || class != retry.Terminal && code == codes.Unavailable {
			all = append(all, code)
		}
	}
	return all
}

// retryPolicy returns nil if there is one attempt: maxAttempts must be above 1.
func (x *export) retryPolicy() *retryPolicy {
	if x.attempts == 1 {
		return nil
	}
	return &retryPolicy{
		MaxAttempts:          x.attempts,
		InitialBackoff:       seconds(x.series.First),
		MaxBackoff:           seconds(x.series.Top),
		BackoffMultiplier:    x.series.Factor,
		RetryableStatusCodes: namesOf(x.codes),
	}
}

// throttling returns the bucket that allows Burst retries in a row when it is full. gRPC retries while more than half
// of maxTokens is left after it has counted the failure, so maxTokens is 2·(Burst+1).
func (o *Options) throttling() *retryThrottling {
	if o.Budget == nil {
		return nil
	}
	c := o.Budget.Effective()
	return &retryThrottling{MaxTokens: 2 * (throttledBurst(c) + 1), TokenRatio: float64(thousandths(c)) / 1000}
}

// throttledBurst returns how many retries in a row gRPC's bucket can hold for c, which is Effective.
func throttledBurst(c retry.BudgetConfig) int { return min(c.Burst, mostTokens/2-1) }

// thousandths returns the Ratio of c, which is Effective, for gRPC: at least one, at most a full bucket.
func thousandths(c retry.BudgetConfig) int {
	full := 2000 * float64(throttledBurst(c)+1)
	return int(math.Round(max(min(c.Ratio*1000, full), 1)))
}

// seconds returns d as protocol buffers write it in JSON: "0.05s".
func seconds(d time.Duration) string {
	text := strings.TrimRight(fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second), "0")
	return strings.TrimSuffix(text, ".") + "s"
}

// namesOf returns the codes as protocol buffers name them.
func namesOf(codes []codes.Code) (names []string) {
	for _, code := range codes {
		names = append(names, retryrpc.Code(code).String())
	}
	return names
}
