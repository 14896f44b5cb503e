package main

import (
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// policy is an entry of the catalog, with the parts that the document cannot hold.
type policy struct {
	name    string
	purpose string              // its use
	why     []why               // one for each key of the document
	budget  *retry.BudgetConfig // of each client; nil: none
	paid    string              // why there is a budget, or none
	use     retryplan.Setting   // its use
	fleet   retryplan.Fleet     // the clients that use it, and their backend
	words   string              // the fleet in words, without its figures
	herd    *retryplan.Scenario // all clients at once after an outage of the server; nil: not looked at
	accept  map[string]string   // code of a finding that remains: why it is accepted
}

// why is the reason for the value of a key.
type why struct{ key, reason string }

// policies returns the catalog in the order of the page.
func policies() []policy {
	return []policy{
		{
			name:    "inline-http",
			purpose: "A request handler that calls another service while its own caller waits.",
			why: []why{
				{"max_attempts", "The usual limit for a request: what so few retries do not mend is not a passing fault."},
				{"base", "About as long as a slow answer takes, so that the first retry does not meet the same moment."},
				{"cap", "A guard: it acts only once the number of attempts is raised."},
				{"jitter", "The widest spread. A wait near zero does no harm, since there are so few."},
				{"attempt_timeout", "Far above the slowest answers. All attempts can hang and the last still starts within the TTL."},
				{"ttl", "Less than the caller's deadline, so that the last attempt has time to be answered."},
				{"max_hint", "A caller does not wait longer than this for a server that asks for patience."},
			},
			budget: &retry.BudgetConfig{},
			paid:   "Successes pay for retries, so that an outage ends them almost at once.",
			use: retryplan.Setting{Inline: true, Deadline: 10 * time.Second, Clients: 200,
				Duration: retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond)},
			fleet: retryplan.Fleet{Rate: 700, Capacity: 1000, Workers: 20, Clients: 200, Budget: &retry.BudgetConfig{},
				Deadline: 10 * time.Second, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}},
			words: "Processes of a frontend call a service that stops for a while, as for a failover.",
		},
		{
			name:    "db-transaction",
			purpose: "A transaction that loses against another one (serialization failure, deadlock) or whose connection breaks.",
			why: []why{
				{"max_attempts", "Conflicts end quickly, and one row can be in demand: more attempts than for a request over HTTP."},
				{"base", "About as long as the transaction that was in the way takes to commit."},
				{"cap", "Longer waits would keep the request waiting for no conflict that still exists."},
				{"jitter", "Two transactions that met must not meet again."},
				{"attempt_timeout", "A transaction that takes as long holds locks that others wait for."},
				{"ttl", "All attempts can hang and the last can still start."},
				{"max_hint", "Databases give no hints; a proxy in front of one may."},
			},
			budget: &retry.BudgetConfig{},
			paid:   "A database that slows down must not be given its transactions again and again.",
			use: retryplan.Setting{Inline: true, Deadline: 6 * time.Second, Clients: 10,
				Duration: retryplan.LogNormal(15*time.Millisecond, 150*time.Millisecond)},
			fleet: retryplan.Fleet{Rate: 300, Capacity: 400, Workers: 8, Clients: 10, Budget: &retry.BudgetConfig{},
				Deadline: 6 * time.Second, Trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 0.25, For: 20 * time.Second}},
			words: "Application processes share a database, most of whose workers are busy with something else for a while.",
		},
		{
			name:    "webhook-delivery",
			purpose: "An event for another party's endpoint, from a queue: no caller waits, and it must not be lost.",
			why: []why{
				{"max_attempts", "Quick ones for a restart, slow ones for a night and a working day."},
				{"base", "An endpoint that has just restarted is back by then."},
				{"factor", "Steeper than two: the schedule passes from seconds to hours in a few attempts."},
				{"cap", "A few attempts a day once it lasts: often enough to be in time once it is mended."},
				{"jitter", "Around each wait, so that the schedule promised to customers stays true in the mean."},
				{"jitter_ratio", "As wide as full jitter in a herd, without its waits near zero."},
				{"attempt_timeout", "Receivers do their work before they answer, against all advice."},
				{"ttl", "Past it the event is stale, and the customer is notified instead."},
				{"max_hint", "As long as the longest wait: a receiver knows best when it is back."},
			},
			paid: "None: a retry that a budget refuses is a dead letter, and a delivery is not to be lost in an outage of minutes. The waits and the spare capacity bound the load instead, as the certificate says.",
			use:  retryplan.Setting{Clients: 20, Duration: retryplan.LogNormal(200*time.Millisecond, 5*time.Second)},
			fleet: retryplan.Fleet{Rate: 40, Capacity: 500, Workers: 100, Clients: 20,
				Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 5 * time.Minute}},
			words:  "Workers deliver to one large receiver with capacity to spare, which hangs while it is being restarted.",
			accept: map[string]string{"no-budget": "see the budget above"},
		},
		{
			name:    "batch-job",
			purpose: "A step of a nightly batch against an internal service: it may take its time, but must be done by morning.",
			why: []why{
				{"max_attempts", "Enough to outlast a deploy or a failover of the service."},
				{"base", "No caller waits: there is no reason to be back sooner."},
				{"factor", "From seconds to the cap in a few waits."},
				{"cap", "A guard: longer waits would leave room for too few attempts within the TTL."},
				{"jitter", "Half of each wait is kept, so that a step never returns at once; the other half spreads the steps, which all begin together."},
				{"attempt_timeout", "A step that takes as long has hung."},
				{"ttl", "What has not been done by then is for the one who is on call."},
				{"max_hint", "A service may ask for a pause in which it is rebuilt, but not for the night."},
			},
			paid: "None: the steps of a batch are the load, and a step that a budget refuses fails the batch. The service has the capacity for every attempt of every step, as the certificate says.",
			use:  retryplan.Setting{Clients: 50, Duration: retryplan.LogNormal(100*time.Millisecond, 2*time.Second)},
			fleet: retryplan.Fleet{Rate: 50, Capacity: 400, Workers: 40, Clients: 50,
				Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 2 * time.Minute}},
			words:  "Workers of a batch call a service that has nothing else to do at night, and which is deployed again meanwhile.",
			accept: map[string]string{"no-budget": "see the budget above"},
		},
		{
			name:    "reconnect-loop",
			purpose: "A client that keeps one connection open and wants it back after a break, for as long as it runs.",
			why: []why{
				{"max_attempts", "A number of attempts means nothing here: the TTL says when to report it."},
				{"base", "A break of the network is over by then, and the user has not noticed."},
				{"cap", "As long as a user who sees \"reconnecting\" stays patient, and no longer than a full restart."},
				{"jitter", "All clients lose their connection in the same instant when the server goes: nothing needs jitter more."},
				{"attempt_timeout", "A handshake with its round trips over a bad mobile network."},
				{"ttl", "Then the run ends, is reported, and the loop around it begins the next one: a client that retries in silence forever is a fault that goes unseen."},
				{"max_hint", "A server that drains its connections can spread them over this."},
			},
			paid: "None: a client makes one call at a time, and a budget that its own successes fund would have nothing when it is needed. Jitter and cap bound the load instead, as the certificate says.",
			use:  retryplan.Setting{Clients: 2000, Duration: retryplan.LogNormal(80*time.Millisecond, time.Second)},
			fleet: retryplan.Fleet{Rate: 20, Capacity: 1500, Workers: 100, Clients: 2000,
				Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 30 * time.Second}},
			words: "Clients, each of which loses its connection every so often, reconnect to a server that hangs for a while.",
			herd: &retryplan.Scenario{
				Clients:  2000,
				Arrivals: retryplan.Arrivals{AtOnce: true},
				Network:  retryplan.Constant(10 * time.Millisecond),
				Server:   retryplan.Server{RateLimit: 150, RateWindow: 100 * time.Millisecond},
				Triggers: []retryplan.Trigger{{Kind: retryplan.Outage, For: 30 * time.Second}},
				Duration: time.Minute, Drain: true, Step: 100 * time.Millisecond,
			},
			accept: map[string]string{"no-budget": "see the budget above"},
		},
	}
}
