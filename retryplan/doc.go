// Package retryplan shows what a retry policy will do before it ships: to one call, and to the backend behind a fleet.
//
//	plan, err := retryplan.New(policy, retryplan.Model{Failure: 0.1})
//	findings := retryplan.Lint(policy, retryplan.Setting{Inline: true, Clients: 200})
//
// # What it answers
//
//   - New computes the schedule of one run: the waits with their spread, the exact distribution of the total wait, the
//     chance to succeed and to finish in time, the attempts that can never start, the load that it multiplies.
//   - Lint finds what is wrong with a policy for its use, and says what to change.
//   - Simulate runs a fleet of clients against a model of a server, event by event, with the policy's own Decide, Admit
//     and Budget: what an outage, a stall or a surge does, and whether the fleet comes back from it.
//   - Certify answers the same by law: safe, vulnerable or metastable, and the trigger that would tip it.
//   - CertifyChain, SimulateChain and LintChain do the same for a chain of services that all retry: their attempts
//     multiply.
//   - Solve goes the other way, from what is required to a policy, or to the two requirements that cannot be met
//     together.
//
// # Pure functions
//
// Everything is a function of its arguments: no clock is read, nothing is sent, and the same seed gives the same numbers
// on every platform. The policy's Rand and Observe are never called; its Gate, Budget and Pay are state of a running
// program and are refused, since a scenario has its own (see Scenario.Breaker, Scenario.Budget and Scenario.Throttle).
package retryplan
