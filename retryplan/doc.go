// Package retryplan predicts the effect of a retry policy on one run, and on the backend of a fleet, before it ships.
//
//	plan, err := retryplan.New(policy, retryplan.Model{Failure: []float64{0.1}})
//	findings := retryplan.Lint(policy, retryplan.Setting{Inline: true, Clients: 200})
//	verdict, err := retryplan.Judge(ctx, retryplan.Question{Policy: policy, Fleet: fleet})
//
// # Questions and functions
//
//   - New computes the schedule of one run, the waits with their spread, the distribution of the total wait, the
//     probability to succeed and to finish in time, the attempts that can never start, the average number of attempts.
//   - Lint finds the faults of a policy for its use, each with a change. It is arithmetic.
//   - Judge counts the simulations in which a fleet comes back from an outage, a stall or a surge. Every event of each is
//     simulated, with the policy's own Decide, Admit and Budget. Simulate shows one of them in detail.
//   - Advise simulates changes on the same seeds before it shows them, and Band finds between which lengths of a trigger
//     chance decides.
//   - Fleet.Storm and Chain.Loads return the number of attempts that reach a backend if everything fails.
//   - A Chain is services that all retry, whose attempts multiply. Judge and Simulate take it in place of a Fleet. A Hedge
//     makes second calls beside slow attempts, as package retryhedge does.
//
// # The worth of a verdict
//
// A Verdict is a count of seeds: 20 of 20 came back, and at most 14 % of others do not, at 95 % confidence. It says
// nothing about another trigger, rate or capacity. Only arithmetic speaks of every trigger. If the attempts of a storm are
// fewer than the backend completes, its queue shrinks whatever has filled it.
//
// # Pure functions
//
// Every result depends on the arguments alone. No function reads a clock or sends anything, and the same seed gives the
// same numbers on every platform. The policy's Rand and Observe are never called. Its Gate, Budget and Pay are state of a
// running program and are refused. A Fleet has its own Budget.
//
// This package may change until it says otherwise.
package retryplan
