package retrydebug

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryhedge"
)

// Options are the settings of New. The zero Options are ready to use.
type Options struct {
	// Name is shown at the top of the page, such as the name of the service. Empty means no name.
	Name string
	// Allow reports whether a request may see the page, in place of IsLoopback. It is called by several goroutines at
	// once. Nil means IsLoopback, by which only programs of this machine may see the page, and not through a proxy.
	Allow func(*http.Request) bool
	// Catalog returns policies whose schedules and budgets are shown, such as the method All of a retryconf.Catalog. It
	// is called for each request. Nil means no such policies. Page.Watch shows the schedule and budget of a single
	// policy.
	Catalog func() []retryconf.Entry
	// Redact returns the text of an error without its secrets. It gets at most 4 KiB of the text, which end at a space
	// if the text is longer. It is called by several goroutines at once. RedactText of package jobsui fits too. Nil means
	// RedactSecrets.
	Redact func(string) string
	// HideErrors leaves out the texts of errors. False means that they are shown, as Redact returns them.
	HideErrors bool
	// Label returns a text for a run that is kept, from the context of its caller, such as the ID of its trace. It is
	// called in the goroutine that retries. Nil means no such text.
	Label func(context.Context) string
}

// Page shows the retries of the policies that report to it. It is an http.Handler for any path. Its methods are safe for
// concurrent use.
type Page struct {
	options Options
	began   time.Time
	rows    atomic.Pointer[map[string]*row] // by the name of the policy, copied to add one
	adding  sync.Mutex                      // guards the change of rows, and budgets
	budgets map[string]*retry.Budget
	runs    runs
}

// New returns a page without policies.
func New(o Options) *Page {
	if o.Allow == nil {
		o.Allow = IsLoopback
	}
	if o.Redact == nil {
		o.Redact = RedactSecrets
	}
	p := &Page{options: o, began: time.Now().UTC(), budgets: map[string]*retry.Budget{}}
	p.rows.Store(&map[string]*row{})
	return p
}

// Observe is a Policy.Observe that shows the events that it gets. Any number of policies can share it, including
// policies of retryjob. It does not block on other goroutines for longer than a few additions take.
func (p *Page) Observe(ctx context.Context, e retry.Event) {
	r, now := p.row(e.Policy), time.Since(p.began)
	if e.Outcome == nil {
		if r.failed(ctx, now, &e) {
			r.setLast(p.failure(now, &e))
		}
		return
	}
	switch r.ended(ctx, now, &e) {
	case addFailed:
		p.runs.addFailed(p.run(ctx, r.name, p.began.Add(now), &e))
	case addSlow:
		if ended := p.began.Add(now); p.runs.isSlow(ended, e.Outcome.Elapsed) {
			p.runs.addSlow(p.run(ctx, r.name, ended, &e))
		}
	}
}

// ObserveHedge is the same for retryhedge.Policy.Observe. The hedges of a policy are shown beside the retries of the
// retry.Policy with the same name.
func (p *Page) ObserveHedge(_ context.Context, e retryhedge.Event) {
	p.row(e.Policy).hedged(time.Since(p.began), &e)
}

// Watch returns policy with an Observe that calls the policy's own Observe and then the page's. The page also shows the
// policy's schedule, TTL and Budget. It is for the place at which a policy is made, not for each call. A later policy
// with the same name replaces the schedule, TTL and Budget of an earlier one.
func (p *Page) Watch(policy retry.Policy) retry.Policy {
	p.row(policy.Name).describe(&policy)
	policy.Observe = retry.Observers(policy.Observe, p.Observe)
	return policy
}

// Budget shows b under a name. If a policy has the name, b is shown in place of the policy's budget. A later b with the
// name replaces it. The page has 100 such names at most. It ignores others, and a nil b.
func (p *Page) Budget(name string, b *retry.Budget) {
	if b == nil {
		return
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	if name = bounded(name, maxName); len(p.budgets) < maxRows || p.budgets[name] != nil {
		p.budgets[name] = b
	}
}

const (
	maxRows = 100 // policies, budgets
	maxName = 128 // bytes of a name, as in retryslog and contrib/retryotel
	other   = "_OTHER"
)

// row returns the row of a policy. All policies beyond maxRows share one.
func (p *Page) row(name string) *row {
	if r := (*p.rows.Load())[name]; r != nil {
		return r
	}
	name = bounded(name, maxName)
	if rows := *p.rows.Load(); len(rows) > maxRows && rows[name] == nil {
		return rows[other]
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	rows := maps.Clone(*p.rows.Load())
	if len(rows) >= maxRows && rows[name] == nil {
		name = other
	}
	if rows[name] == nil {
		rows[name] = &row{name: name}
		p.rows.Store(&rows)
	}
	return rows[name]
}
