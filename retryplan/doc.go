// Package retryplan predicts what a retry policy does before it ships: to one run, and to the backend of a fleet.
//
//	plan, err := retryplan.New(policy, retryplan.Model{Failure: 0.1})
//	findings := retryplan.Lint(policy, retryplan.Setting{Inline: true, Clients: 200})
//
// # What it answers
//
//   - New computes the schedule of one run: the waits with their spread, the distribution of the total wait, the
//     probability to succeed and to finish in time, the attempts that can never start, the average number of attempts.
//   - Lint finds what is wrong with a policy for its use, and says what to change.
//   - Simulate runs a fleet of clients against a model of a server, event by event, with the policy's own Decide, Admit
//     and Budget: what an outage, a stall or a surge does, and whether the fleet recovers.
//   - Certify answers the same by law: safe, vulnerable or metastable, and the trigger that would tip the fleet.
//   - A Hedge in each of them makes second calls beside slow attempts, as package retryhedge does.
//   - CertifyChain and SimulateChain do the same for a chain of services that all retry, whose attempts multiply.
//
// # Pure functions
//
// Every result depends on the arguments alone: no function reads a clock or sends anything, and the same seed gives the
// same numbers on every platform. The policy's Rand and Observe are never called. Its Gate, Budget and Pay are state of a
// running program and are refused; a Scenario has its own Budget.
//
// This package may change until it says otherwise.
package retryplan
