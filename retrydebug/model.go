package retrydebug

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Version is the version of the JSON form of a Snapshot. It changes if a field is renamed or removed, or changes its
// meaning. A new field does not change it.
const Version = 1

// Snapshot is the state of a Page at one time. It is the model of the HTML, the text and the JSON. Durations are in
// nanoseconds.
type Snapshot struct {
	Version  int       `json:"version"`
	Name     string    `json:"name,omitempty"` // Options.Name
	Taken    time.Time `json:"taken"`
	Since    time.Time `json:"since"`    // when the page was made
	Policies []Policy  `json:"policies"` // by State, the worst first, and then by name
	Budgets  []Budget  `json:"budgets"`  // by name
	Failed   []Run     `json:"failed"`   // the newest first
	Slowest  []Run     `json:"slowest"`  // that succeeded after retries in the last hour, the slowest first
}

// Policy describes the runs of one policy, or of all policies beyond the first 100, whose Name is "_OTHER".
type Policy struct {
	Name     string        `json:"name"`
	Schedule string        `json:"schedule,omitempty"` // retry.Policy.String without the name, or empty if it is not known
	TTL      time.Duration `json:"ttl_ns,omitempty"`
	// State is "failing" if at least half of the runs of the last minute gave up, not counting those that their callers
	// canceled, and "some fail" if fewer did. It is "failed" if there was an outage in that minute, no run has given up
	// for 10 s, and runs succeed again. If no run gave up, it is "retrying" if there was a retry in the minute or a run
	// is Waiting, and otherwise "calm".
	State   string   `json:"state"`
	Trouble *Trouble `json:"trouble,omitempty"` // the newest, or nil if no run has given up
	// Waiting is the number of runs that have failed an attempt, will make another, and have not ended. It has no jobs:
	// they can end in another process. A run stays in it if its function has panicked.
	Waiting     int           `json:"waiting"`
	Jobs        bool          `json:"jobs,omitempty"`         // some of its runs are of jobs
	Budget      string        `json:"budget,omitempty"`       // the name of its Budget
	BudgetEmpty bool          `json:"budget_empty,omitempty"` // it has less than one token
	Minute      Figures       `json:"minute"`                 // of the last 60 to 70 s
	Hour        Figures       `json:"hour"`                   // of the last 60 to 61 minutes
	Total       Figures       `json:"total"`                  // since the page was made
	Slowest     time.Duration `json:"slowest_ns"`             // run of the last hour, whatever its end, to the millisecond
	Retries     []int         `json:"retries_by_minute"`      // of the last 60 minutes, the newest last
	GaveUp      []int         `json:"gave_up_by_minute"`      // likewise
	Last        *Failure      `json:"last_failure,omitempty"` // the newest, to the second
}

// Trouble is a time in which runs gave up. It begins with an outage, or with the first run that gave up after ten minutes
// without one. An outage is a series of periods of 10 s in each of which at least half of the runs gave up.
type Trouble struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"` // the newest run that gave up
}

// Figures are counts of the events within a time.
type Figures struct {
	Over      time.Duration  `json:"over_ns"`
	Runs      int            `json:"runs"`      // that ended, which is the sum of the next five
	FirstTry  int            `json:"first_try"` // succeeded at the first attempt
	Recovered int            `json:"recovered"` // succeeded after a retry
	Answered  int            `json:"answered"`  // ended with an answer that is no failure, such as a 404
	GaveUp    int            `json:"gave_up"`   // failed
	Canceled  int            `json:"canceled"`  // were canceled by their caller
	Reasons   map[string]int `json:"reasons"`   // of GaveUp, by the text of the retry.Reason
	InDoubt   int            `json:"in_doubt"`  // of GaveUp and Canceled: the work may have been done (retry.IsAmbiguous)
	Retries   int            `json:"retries"`   // that were decided
	Hedges    *Hedges        `json:"hedges,omitempty"`
}

// Hedges are counts of calls that could be hedged.
type Hedges struct {
	Calls   int `json:"calls"`
	Hedged  int `json:"hedged"`
	Won     int `json:"won"`     // a hedge was first
	Refused int `json:"refused"` // the budget had no token
}

// Failure is a failed attempt.
type Failure struct {
	At      time.Time `json:"at"`
	Target  string    `json:"target,omitempty"`
	Attempt Attempt   `json:"attempt"` // with a Start of 0
}

// Budget is a retry.Budget. Hedges that it refused are counted in Hedges.
type Budget struct {
	Name          string   `json:"name"`     // the one given to Page.Budget, or the names of Policies
	Policies      []string `json:"policies"` // that are known to use it, by name
	Tokens        float64  `json:"tokens"`
	Burst         int      `json:"burst"`
	RefusedMinute int      `json:"refused_minute"` // runs of Policies that ended as budget_exhausted in their Minute
	RefusedHour   int      `json:"refused_hour"`   // likewise
	Refused       int      `json:"refused"`        // retries that it had no token for since it was created, of Policies or not
}

// Run is a run that has ended.
type Run struct {
	Policy      string        `json:"policy"`
	Status      string        `json:"status"`           // retry.Status
	Reason      string        `json:"reason,omitempty"` // retry.Reason
	EndedByGate bool          `json:"ended_by_gate,omitempty"`
	InnerGaveUp bool          `json:"inner_gave_up,omitempty"`
	InDoubt     bool          `json:"in_doubt,omitempty"` // the work may have been done (retry.IsAmbiguous)
	Target      string        `json:"target,omitempty"`   // method and host of a request, or the method of a gRPC call
	Job         string        `json:"job,omitempty"`      // the kind of a job
	Label       string        `json:"label,omitempty"`    // Options.Label
	Ended       time.Time     `json:"ended"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Deadline    time.Duration `json:"deadline_ns,omitempty"` // of the caller, since the run began, or 0 without a deadline
	TTL         time.Duration `json:"ttl_ns,omitempty"`      // of the policy, or 0 for a job, which can have its own
	Attempts    int           `json:"attempts"`
	History     []Attempt     `json:"history"`         // the first and the newest 7 that failed, and the one that succeeded
	Error       string        `json:"error,omitempty"` // why the caller's context ended, if there was no attempt
}

// Attempt is an attempt of a run.
type Attempt struct {
	Number   int           `json:"number"`
	Start    time.Duration `json:"start_ns"` // since the run began
	Duration time.Duration `json:"duration_ns"`
	Ended    string        `json:"ended"`             // "retryable", "terminal", "timeout" or "succeeded"
	Wait     time.Duration `json:"wait_ns,omitempty"` // that was decided on
	Hint     time.Duration `json:"hint_ns,omitempty"` // how long the server asked to wait
	Error    string        `json:"error,omitempty"`
}

// Snapshot returns the state that the page shows now.
func (p *Page) Snapshot() Snapshot {
	now := time.Now().UTC()
	s := Snapshot{Version: Version, Name: bounded(p.options.Name, maxName), Taken: now, Since: p.began, Policies: []Policy{}, Budgets: []Budget{}}
	if p.options.Catalog != nil {
		for _, entry := range p.options.Catalog() {
			p.row(entry.Policy.Name).describe(&entry.Policy)
		}
	}
	p.adding.Lock()
	named := maps.Clone(p.budgets)
	p.adding.Unlock()

	ttls, users := map[string]time.Duration{}, map[*retry.Budget][]*Policy{}
	rows := *p.rows.Load()
	s.Policies = make([]Policy, len(rows))
	for i, name := range slices.Sorted(maps.Keys(rows)) {
		var budget *retry.Budget
		s.Policies[i], budget = rows[name].shown(p.began, now)
		ttls[name] = s.Policies[i].TTL
		if b := named[name]; b != nil {
			budget = b
		}
		if budget != nil {
			users[budget] = append(users[budget], &s.Policies[i])
		}
	}
	s.Budgets = budgets(named, users)
	slices.SortStableFunc(s.Policies, func(a, b Policy) int { return cmp.Compare(urgency[a.State], urgency[b.State]) })
	s.Failed, s.Slowest = p.runs.copied(now)
	for _, list := range [][]Run{s.Failed, s.Slowest} {
		for i := range list {
			if list[i].Job == "" {
				list[i].TTL = ttls[list[i].Policy]
			}
		}
	}
	return s
}

// budgets returns the budgets by name, and notes each in the policies that use it. One without a name of its own has
// the names of these policies.
func budgets(named map[string]*retry.Budget, users map[*retry.Budget][]*Policy) []Budget {
	list := []Budget{}
	add := func(name string, b *retry.Budget) {
		shown := Budget{Name: name, Policies: []string{}, Tokens: b.Tokens(), Burst: b.Burst(), Refused: b.Refused()}
		for _, p := range users[b] {
			p.Budget, p.BudgetEmpty = name, shown.Tokens < 1
			shown.Policies = append(shown.Policies, p.Name)
			shown.RefusedMinute += p.Minute.Reasons[retry.BudgetExhausted.Error()]
			shown.RefusedHour += p.Hour.Reasons[retry.BudgetExhausted.Error()]
		}
		list = append(list, shown)
	}
	hasName := map[*retry.Budget]bool{}
	for name, b := range named {
		add(name, b)
		hasName[b] = true
	}
	for b, policies := range users {
		if hasName[b] {
			continue
		}
		var names []string
		for _, p := range policies {
			names = append(names, p.Name)
		}
		add(bounded(strings.Join(names, ", "), maxName), b)
	}
	slices.SortFunc(list, func(a, b Budget) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

const (
	failing  = "failing"
	failed   = "failed"
	someFail = "some fail"
	retrying = "retrying"
	calm     = "calm"
)

var urgency = map[string]int{failing: 0, failed: 1, someFail: 2, retrying: 3, calm: 4}

// shown returns the row as the page shows it, and the policy's budget.
func (r *row) shown(began, at time.Time) (Policy, *retry.Budget) {
	now := at.Sub(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	long, short := newest(r.long[:], now, longSlot), newest(r.short[:], now, shortSlot)
	p := Policy{
		Name: r.name, Schedule: r.schedule, TTL: r.ttl, Waiting: r.waiting, Jobs: r.jobs, Last: r.last,
		Minute: sum(short, now, shortSlot), Hour: sum(long, now, longSlot), Total: figures(&r.total, now),
	}
	for _, s := range long[len(long)-minutes:] {
		p.Retries = append(p.Retries, int(s.counts[retries]))
		p.GaveUp = append(p.GaveUp, sum([]slot{s}, now, longSlot).GaveUp)
		p.Slowest = max(p.Slowest, time.Duration(s.slowest)*time.Millisecond)
	}
	r.trouble.close(now)
	p.State = r.trouble.state(now, &p.Minute, p.Waiting)
	if r.trouble.any {
		p.Trouble = &Trouble{Since: began.Add(r.trouble.since), Until: began.Add(r.trouble.last)}
	}
	return p, r.budget
}

// sum returns the figures of all slots. The last slot is the one that now is in.
func sum(slots []slot, now, length time.Duration) Figures {
	var total [kinds]uint64
	for i := range slots {
		for k, n := range slots[i].counts {
			total[k] += uint64(n)
		}
	}
	return figures(&total, min(now, now%length+time.Duration(len(slots)-1)*length))
}

func figures(n *[kinds]uint64, over time.Duration) Figures {
	f := Figures{
		Over: over, FirstTry: int(n[firstTry]), Recovered: int(n[recovered]), Answered: int(n[answered]),
		Canceled: int(n[canceled]), InDoubt: int(n[doubts]), Retries: int(n[retries]),
		Reasons: map[string]int{},
	}
	for k := gaveUp; k < canceled; k++ {
		if n[k] > 0 {
			f.GaveUp += int(n[k])
			f.Reasons[cmp.Or(retry.Reason(k-gaveUp).Error(), other)] = int(n[k])
		}
	}
	f.Runs = f.FirstTry + f.Recovered + f.Answered + f.GaveUp + f.Canceled
	if n[calls] > 0 {
		f.Hedges = &Hedges{int(n[calls]), int(n[hedges]), int(n[won]), int(n[refused])}
	}
	return f
}
