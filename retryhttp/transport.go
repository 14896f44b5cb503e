package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Transport is an http.RoundTripper that repeats requests as its Policy says, through another one. The zero Transport
// repeats what may be repeated with the schedule of retry.Inline.
//
// A Transport is safe for concurrent use. Its fields must not be changed once it is in use. It does not follow
// redirects: that is for the http.Client around it.
type Transport struct {
	// Base makes the attempts. Beyond the rules of http.RoundTripper (do not change the request, close its body, no
	// response with an error) it must return a response of its own for each call, whose body's Close ends a Read that
	// waits, and it must tell the context's httptrace of its connections, or return net/http's errors unchanged: by
	// these a Transport knows that nothing was sent. A stream that Base has not closed a second after it failed is
	// not sent again. An http.Transport itself sends a request again, within one attempt, when a connection that was
	// used before dies under a request that is replayable to it: a GET, or any with an Idempotency-Key. If an HTTP/2
	// server refuses the stream (REFUSED_STREAM), it sends it up to seven times more, with waits of 63s in all, which
	// only AttemptTimeout or the caller cuts short. Nil means http.DefaultTransport, which keeps using an HTTP/2
	// connection that has died without a word: NewBase returns a transport that does not.
	Base http.RoundTripper

	// Policy says how often, how long and for which failures a request is repeated. If it sets nothing of a schedule
	// (see retry.Policy.OrSchedule), that of retry.Inline is used. If it sets neither MaxHint nor TTL, MaxHint is 1m, or
	// the longest of its Base, Cap and Delays: a caller waits here, for every hint of a run. Its Classify judges each *AttemptError before the
	// classifier of this package does. Its AttemptTimeout covers an attempt up to the response's headers and never cuts
	// a body that is being read; a response that comes later is closed. Over HTTP/2 it ends the attempt's stream and not
	// the connection, which the retry uses again: see Base. Its Observe, Gate and Pay get the request's
	// context; the final event of a run that did not succeed has an Err even if RoundTrip returns the last response
	// without one.
	Policy retry.Policy

	// PolicyFunc returns the policy of a run in place of Policy, such as the Policy method of a Ref of package retryconf,
	// so that a reload reaches a Transport in use. It is called once for each RoundTrip. Nil means Policy.
	PolicyFunc func() retry.Policy

	// PolicyFor is PolicyFunc by request, for example by host or route, and goes before it. Nil means PolicyFunc.
	PolicyFor func(*http.Request) retry.Policy

	// Accept reports whether a response is a success whatever its status and the rules are. A response that it does not
	// accept is judged by the rules, even a 200. Nil means 2xx and 101.
	Accept func(*http.Response) bool

	// Delivery declares that only what Accept accepts is a success, as it is for a webhook. A response that is neither
	// accepted nor repeated, such as a 3xx or a 404, then ends the run as a dead letter. Zero means that such a response
	// is an answer: the run has succeeded.
	Delivery bool

	// Hint reads from a failed response how long to stay away, beside Retry-After: the longer wins. RateLimitReset is
	// ready-made. 0 or less is no hint. Nil means Retry-After alone.
	Hint func(*http.Response) time.Duration

	// Idempotent declares that every request on this Transport may be repeated, whatever its method is, as deliveries
	// to webhooks may. Zero means that the function Repeatable decides, and Repeat.
	Idempotent bool

	// Repeat reports whether a request that is not repeatable otherwise may be sent again after this failure, as a POST
	// may after a 429. It is asked if a server may have acted on the request and the rules call for another attempt. For
	// a call that must not be repeated at all there is retry.OneAttempt. Nil means no.
	Repeat func(*AttemptError) bool

	// IdempotencyKey gives the value of the Idempotency-Key header for a request whose method is not idempotent and
	// that has none; the request may then be repeated. It is called once for each RoundTrip, and every attempt
	// carries the same value; a redirect that a client follows is another RoundTrip. RandomKey is ready-made. ""
	// means no key for this request. Nil means never.
	IdempotencyKey func(*http.Request) string

	// BufferBody is up to how many bytes of a body without GetBody are read into memory before the first attempt, so
	// that it can be sent again, with its length in Content-Length unless the request has a Trailer or asks for chunks.
	// A longer body is sent as a stream. The attempt timeout does not cover this, and when
	// the caller is done the body is closed, which has to end its Read. Zero means none.
	BufferBody int64

	// StallTimeout is how long one Read of a response's body may take. When it is over the body is closed and Read
	// returns ErrBodyStalled. The body of a 101 is not bound by it. Zero means no limit.
	StallTimeout time.Duration

	// Budgets pays for retries, with one budget for each BudgetKey. Nil means Policy.Budget.
	Budgets *retry.Budgets
	// BudgetKey names the budget of a request, for example by tenant and host: with ByHost all tenants that call one
	// host share a budget. Nil means ByHost.
	BudgetKey func(*http.Request) string

	// Gate is asked before every attempt how long to stay away, and Policy.Gate if it says go, so that Policy.Gate,
	// which may be a limiter that takes a token, has the last word. 0 or less means go. Nil means no gate.
	Gate func(*http.Request) time.Duration

	// AttemptHeader is the name of a request header that carries the attempt's number, "1" for the first, in place of
	// what the caller's request has under that name. The constant AttemptHeader is the conventional name. Empty means none.
	AttemptHeader string
}

// NewClient returns a client that repeats requests as p says and does not follow redirects: a 3xx is the answer and is
// returned. It is the Client of a Transport that has a Policy only.
func NewClient(p retry.Policy) *http.Client { return (&Transport{Policy: p}).Client() }

// Client returns a client of t that does not follow redirects, as deliveries to other people's URLs must not. For one that
// does, put t into an http.Client of your own.
func (t *Transport) Client() *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Validate returns nil or retry.FieldErrors with every bad field: those of Policy, a negative BufferBody or StallTimeout,
// and an AttemptHeader that is no field name. RoundTrip refuses such a Transport.
func (t *Transport) Validate() error { return t.validate(&t.Policy) }

func (t *Transport) validate(p *retry.Policy) error {
	const pkg = "retryhttp"
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	if t.BufferBody < 0 {
		bad.Add(pkg, "Transport.BufferBody", t.BufferBody, "is negative")
	}
	if t.StallTimeout < 0 {
		bad.Add(pkg, "Transport.StallTimeout", t.StallTimeout, "is negative")
	}
	switch name := http.CanonicalHeaderKey(t.AttemptHeader); {
	case name != "" && !isToken(name):
		bad.Add(pkg, "Transport.AttemptHeader", strconv.Quote(name), "is not a field name")
	case slices.Contains(takenNames, name):
		bad.Add(pkg, "Transport.AttemptHeader", strconv.Quote(name), "has a meaning of its own")
	}
	return bad.Err()
}

// takenNames are headers that change what a request is.
var takenNames = []string{"Authorization", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key",
	"Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key"}

// check is Validate for a run under p, as far as Do does not do the same for every call.
func (t *Transport) check(p *retry.Policy) error {
	if p.AttemptTimeout != 0 || t.BufferBody != 0 || t.StallTimeout != 0 || t.AttemptHeader != "" {
		return t.validate(p)
	}
	return nil
}

// policyFor returns the policy for one RoundTrip. If PolicyFor or PolicyFunc panics, it closes the request's body.
func (t *Transport) policyFor(req *http.Request) *retry.Policy {
	if t.PolicyFor == nil && t.PolicyFunc == nil {
		return &t.Policy
	}
	returned := false
	defer func() {
		if !returned && req.Body != nil {
			_ = req.Body.Close()
		}
	}()
	var p retry.Policy
	if t.PolicyFor != nil {
		p = t.PolicyFor(req)
	} else {
		p = t.PolicyFunc()
	}
	returned = true
	return &p
}

// RoundTrip makes attempts until one succeeds or the policy ends the run.
//
// It returns a nil error with the last response, readable in full, if the run ended because of that response: it is
// a success or an answer, is not to be repeated, asks for too long a wait, or nothing was left to repeat it with
// (attempts, budget, TTL, the time to the caller's deadline). OutcomeOf says which. Otherwise it returns the *retry.Error, whose Last
// holds the *AttemptError of the last attempt, if there was one; a Transport that does not validate and a nil request are
// refused with other errors.
//
// A response is given up once its retry has been decided on and paid for: it is read for up to 64 KiB and 100ms, so that
// its connection can be used again, and closed. If the run ends after that, because of a slow Observe or a gate, RoundTrip
// returns the *retry.Error.
//
// The request is not changed, its body is closed in every case, and the response's Request is the caller's.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return nil, errors.New("retryhttp: RoundTrip: Request is nil")
	}
	c := newCall(t, req)
	defer c.finish()
	if err := t.check(c.policy); err != nil {
		return nil, err
	}
	p := c.policy.OrSchedule(retry.Inline())
	p.AttemptTimeout = 0 // it covers the headers only, which Do cannot know
	p.Classify, p.Pay, p.Observe, p.Gate = classOf, pay, nil, nil
	if c.policy.Observe != nil || c.records != nil {
		p.Observe = observe
	}
	if c.refused = refusal(req); c.refused == nil {
		if p.TTL > 0 {
			c.began = time.Now()
		}
		if c.policy.Gate != nil || t.Gate != nil {
			p.Gate = gate
		}
		if t.Budgets != nil {
			p.Budget = t.Budgets.For(t.budgetKey(req))
		}
	}
	if p.MaxHint == 0 && p.TTL == 0 {
		p.MaxHint = patience(p)
	}
	err := retry.Do(c, p, func(ctx context.Context) error { return c.attempt(ctx) })
	if failed, ok := err.(*retry.Error); ok && failed.Cause() != nil {
		return nil, c.detached(failed) // the caller has gone and reads no response
	}
	if err != nil && c.resp == nil {
		return nil, err
	}
	resp := c.resp
	c.resp, c.returned = nil, true
	return resp, nil
}

// patience returns the MaxHint of a policy that says neither how long a hint nor how long a run may be: the default of
// package retry, an hour, is made for work that waits in a queue, and a caller of RoundTrip waits for each of the hints.
func patience(p retry.Policy) time.Duration {
	longest := max(time.Minute, p.Base, p.Cap)
	for _, d := range p.Delays {
		longest = max(longest, d)
	}
	return longest
}

// CloseIdleConnections calls the method of Base, if it has one. A Transport itself never does: a failure does not empty
// the pool.
func (t *Transport) CloseIdleConnections() {
	if closer, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) budgetKey(req *http.Request) string {
	if t.BudgetKey != nil {
		return t.BudgetKey(req)
	}
	return ByHost(req)
}

// ByHost returns the host of the request's URL, with its port if that is given, in lower case.
func ByHost(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	return strings.ToLower(req.URL.Host)
}

// classOf is the Classify of every run, whose attempts fail with an AttemptError each: that knows whose rules to ask.
func classOf(err error) retry.Class { return attemptError(err).class() }

// pay is the Pay of every run. The last response is given up here, since nothing but time can prevent the retry now.
func pay(ctx context.Context, d retry.Decision) bool {
	c := ctx.(*call)
	if own := c.policy.Pay; own != nil && !own(c.Context, d) {
		return false
	}
	c.giveUp(d.Delay)
	return true
}

// observe is the Observe of every run that is observed or recorded.
func observe(ctx context.Context, e retry.Event) {
	c := ctx.(*call)
	if e.Outcome != nil && c.records != nil {
		c.records.add(c.req, e.Outcome)
	}
	if tell := c.policy.Observe; tell != nil {
		tell(c.Context, e)
	}
}

// gate is the Gate of every run that has one.
func gate(ctx context.Context) time.Duration {
	c := ctx.(*call)
	if ask := c.transport.Gate; ask != nil {
		if delay := ask(c.req); delay > 0 {
			return delay // after which both are asked again
		}
	}
	if ask := c.policy.Gate; ask != nil {
		return ask(c.Context)
	}
	return 0
}
