package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// intro is the part of the page that has no figures.
const intro = `# Policies to start from

<!-- Written by go run ./examples/policies -w examples/policies/README.md: change the program, not this page. -->

Take the one that is nearest to your case, put your own figures into its fleet, and look again before you ship it. The policies
are in [policies.json](policies.json), which a [retryconf.Catalog](https://pkg.go.dev/github.com/retrygo/retry/retryconf) loads; what
is code, a budget, and the fleets are in [policies.go](policies.go). All figures on this page are computed: findings by
retryplan.Lint, certificates by retryplan.Certify, and simulations by retryplan.Simulate of the same fleet, whose
backend works in the order of arrival and does not notice clients that have gone.

A certificate counts the recovery until the last attempt that will fail has been sent, a simulation, in which arrivals are by chance,
until successes come as often as runs begin, which is later.
`

// seeds are those that the simulations are run with. The page shows the first.
var seeds = []uint64{1, 2, 3}

// page writes the whole page to w.
func page(ctx context.Context, w *bytes.Buffer) error {
	loaded, err := load()
	if err != nil {
		return err
	}
	given, err := keys()
	if err != nil {
		return err
	}
	w.WriteString(intro)
	for _, p := range policies() {
		e := entry{policy: p, loaded: loaded[p.name], keys: given[p.name], w: w}
		e.describe()
		if err := e.plan(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := e.findings(); err != nil {
			return err
		}
		if err := e.certificate(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := e.returns(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// keys returns the keys of each policy in the document, with their values as they stand there.
func keys() (map[string]map[string]any, error) {
	var d struct{ Policies map[string]map[string]any }
	err := json.Unmarshal(document, &d)
	return d.Policies, err
}

// entry is a policy on its way to the page.
type entry struct {
	policy
	loaded retry.Policy
	keys   map[string]any
	w      *bytes.Buffer
}

func (e *entry) printf(format string, args ...any) { fmt.Fprintf(e.w, format, args...) }

// describe writes the policy and its purpose.
func (e *entry) describe() {
	schedule := e.loaded
	schedule.Name = "" // it is the heading
	e.printf("\n## %s\n\n%s\n\n```\n%v\n```\n\n| key | value | why |\n|---|---|---|\n", e.name, e.purpose, schedule)
	for _, y := range e.why {
		e.printf("| %s | %v | %s |\n", y.key, e.keys[y.key], y.reason)
	}
	e.printf("| budget | %s | %s |\n", budgetText(e.budget), e.paid)
}

func budgetText(b *retry.BudgetConfig) string {
	switch {
	case b == nil:
		return "none"
	case *b == retry.BudgetConfig{}:
		return "retry.BudgetConfig{}"
	default:
		return strings.ReplaceAll(fmt.Sprintf("%+v", *b), "|", "")
	}
}

// plan writes what one run does, by how often its attempts fail.
func (e *entry) plan() error {
	e.printf("\n| attempts fail | runs succeed | attempts a run | half of the runs end within | 99 %% of the runs | worst case |\n|---|---|---|---|---|---|\n")
	for _, failure := range []float64{0.1, 0.5, 0.9} {
		p, err := retryplan.New(e.loaded, retryplan.Model{Failure: []float64{failure}, Duration: e.use.Duration, Deadline: e.use.Deadline})
		if err != nil {
			return err
		}
		e.printf("| %s %% | %s %% | %s | %s | %s | %s |\n", short(failure*100), share(p.Success), short(p.Load),
			brief(p.Elapsed.Quantile(0.5)), brief(p.Elapsed.Quantile(0.99)), brief(p.WorstCase))
	}
	return nil
}

// share prints f as a percentage that is 100 only if less than one run in a million is missing.
func share(f float64) string {
	if f < 0.999 || f > 1-1e-6 {
		return short(f * 100)
	}
	return fmt.Sprintf("%.2f", min(math.Floor(f*1e4), 9999)/100)
}

// brief prints d to three digits.
func brief(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return plain(d.Round(unit))
}

// findings writes what Lint says, and why it is accepted. A finding above a note that has not been accepted is an
// error, and so is the acceptance of a finding that does not occur.
func (e *entry) findings() error {
	found := retryplan.Lint(e.loaded, e.use)
	e.printf("\nLint (%s):", settingText(e.use))
	if len(found) == 0 {
		e.printf(" no findings.\n")
	} else {
		e.printf("\n\n")
	}
	accepted := map[string]bool{}
	for _, f := range found {
		reason, ok := e.accept[f.Code]
		if !ok {
			return fmt.Errorf("%s: %s is not accepted: %s %s", e.name, f.Code, f.Text, f.Change)
		}
		accepted[f.Code] = true
		e.printf("- %s (%s): %s Accepted: %s.\n", f.Code, levelText(f.Level), f.Text, reason)
	}
	for code := range e.accept {
		if !accepted[code] {
			return fmt.Errorf("%s: %s is accepted, but not found", e.name, code)
		}
	}
	return nil
}

func levelText(l retryplan.Level) string {
	return [...]string{"", "note", "warning", "severe"}[l]
}

func settingText(s retryplan.Setting) string {
	where := "from a queue"
	if s.Inline {
		where = "inline"
	}
	if s.Deadline > 0 {
		where += fmt.Sprintf(" with a deadline of %v", s.Deadline)
	}
	return fmt.Sprintf("%s, %d clients, attempts of %v", where, s.Clients, s.Duration)
}

// certificate writes the fleet, its certificate and what its simulations saw. A fleet that is not safe, or vulnerable
// with a budget, and a simulation that disagrees are errors: such a policy is not to be recommended.
func (e *entry) certificate(ctx context.Context) error {
	f, bare := e.fleet, e.loaded
	bare.Budget = nil // it is state of a running program; the fleet has the same one for each client
	c, err := retryplan.Certify(bare, f)
	if err != nil {
		return err
	}
	if c.Stability != retryplan.Safe && (c.Stability != retryplan.Vulnerable || f.Budget == nil) {
		return fmt.Errorf("the fleet is %v (%v): %+v", c.Stability, c.Law, c)
	}
	e.printf("\n%s %d clients begin %v runs a second in all; the backend completes %v attempts a second, %d at a time, and is %s %% busy. Trigger: %s.\n",
		e.words, f.Clients, f.Rate, f.Capacity, f.Workers, short(100*f.Rate/f.Capacity), triggerText(f.Trigger))
	e.printf("\nCertificate: **%v** (%v), with a margin of %s %% to another verdict. Attempts a run in a storm: %s; hidden capacity: %s runs a second; ",
		c.Stability, c.Law, short(c.Margin*100), short(c.Attempts), short(c.HiddenCapacity))
	e.printf("recovery: %s; %s tips the fleet.", lasting(c.Recovery, "forever"), lasting(c.Tipping, "no trigger, however long,"))
	if f.Budget != nil {
		free := f
		free.Budget = nil
		without, err := retryplan.Certify(bare, free)
		if err != nil {
			return err
		}
		e.printf(" Without the budget: %v (%v); attempts a run in a storm: %s.", without.Stability, without.Law, short(without.Attempts))
	}
	for _, seed := range seeds {
		r, err := retryplan.Simulate(ctx, f.Scenario(bare, seed))
		if err != nil {
			return err
		}
		// The arrivals of a Poisson process differ from their mean, the more the slower the recovery.
		latest := c.Recovery + c.Recovery/5 + bare.AttemptTimeout + 5*time.Second
		if !r.Recovered || r.Recovery > latest {
			return fmt.Errorf("seed %d: recovered %v after %v, and the certificate says %+v", seed, r.Recovered, r.Recovery, c)
		}
		if seed == seeds[0] {
			e.printf("\n\nSimulation of %s: recovered after %s; attempts a run: %s; most attempts a second: %s; failed: %s %%.\n",
				lasting(r.Simulated.Round(time.Second), ""), lasting(r.Recovery, ""), short(r.Amplification),
				short(float64(r.Peak)/r.Step.Seconds()), short(r.Failed*100))
		}
	}
	return nil
}

// returns writes what happens when all clients come back at once, with the policy's jitter and without.
func (e *entry) returns(ctx context.Context) error {
	if e.herd == nil {
		return nil
	}
	s := *e.herd
	gone := s.Triggers[0].For
	e.printf("\nThe herd: all %d begin at once and the server is gone for %s; then it takes %d attempts each %s and rejects the rest. Times are from its return.\n",
		s.Clients, lasting(gone, ""), s.Server.RateLimit, s.Server.RateWindow)
	e.printf("\n| jitter | attempts a run | rejected after the return | peak each %s after it | half are back | all are back |\n|---|---|---|---|---|---|\n", s.Step)
	for _, jitter := range []retry.JitterMode{e.loaded.Jitter, retry.NoJitter} {
		s.Policy = e.loaded
		s.Policy.Budget, s.Policy.Jitter, s.Seed = nil, jitter, seeds[0]
		r, err := retryplan.Simulate(ctx, s)
		if err != nil {
			return err
		}
		rejected, peak := 0, 0
		for _, point := range r.Series {
			if point.Start >= gone {
				rejected += point.Rejected
				peak = max(peak, point.Arrived)
			}
		}
		e.printf("| %v | %s | %d | %d | %s | %s |\n", jitter, short(r.Amplification), rejected, peak,
			lasting(r.Finished.Quantile(0.5)-gone, ""), lasting(r.Finished.Quantile(1)-gone, ""))
	}
	return nil
}

func triggerText(t retryplan.Trigger) string {
	switch t.Kind {
	case retryplan.Stall:
		return fmt.Sprintf("it works on nothing for %s", lasting(t.For, ""))
	case retryplan.CapacityCut:
		return fmt.Sprintf("only %s %% of it is there for %s", short(t.Factor*100), lasting(t.For, ""))
	default:
		return fmt.Sprintf("%+v", t)
	}
}

// lasting prints d to a tenth of a second, and a negative one as never.
func lasting(d time.Duration, never string) string {
	if d < 0 {
		return never
	}
	return plain(d.Round(100 * time.Millisecond))
}

// plain prints "5m" for "5m0s" and "1h" for "1h0m0s".
func plain(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if cut := strings.TrimSuffix(text, zero); cut != "" && strings.ContainsAny(cut[len(cut)-1:], "mh") {
			text = cut
		}
	}
	return text
}

// short prints f to three digits, and all digits of its whole part.
func short(f float64) string {
	digits := 2
	for x := math.Abs(f); x >= 10 && digits > 0; x /= 10 {
		digits--
	}
	text := fmt.Sprintf("%.*f", digits, f)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
