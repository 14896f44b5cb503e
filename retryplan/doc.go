// Package retryplan predicts what a retry policy does before it ships: to one run, and to the backend of a fleet.
//
//	plan, err := retryplan.New(policy, retryplan.Model{Failure: []float64{0.1}})
//	findings := retryplan.Lint(policy, retryplan.Setting{Inline: true, Clients: 200})
//	verdict, err := retryplan.Judge(ctx, retryplan.Question{Policy: policy, Fleet: fleet})
//
// # What it answers
//
//   - New computes the schedule of one run: the waits with their spread, the distribution of the total wait, the
//     probability to succeed and to finish in time, the attempts that can never start, the average number of attempts.
//   - Lint finds what is wrong with a policy for its use, and says what to change. It is arithmetic.
//   - Judge counts the simulations in which a fleet comes back from an outage, a stall or a surge. Every event of each is
//     simulated, with the policy's own Decide, Admit and Budget. Simulate shows one of them in detail.
//   - Advise simulates changes on the same seeds before it shows them, and Band finds between which lengths of a trigger
//     chance decides.
//   - Fleet.Storm and Chain.Loads multiply attempts: how many reach a backend if everything fails.
//   - A Chain is services that all retry, whose attempts multiply; Judge and Simulate take it in place of a Fleet. A Hedge
//     makes second calls beside slow attempts, as package retryhedge does.
//
// # What a verdict is worth
//
// A Verdict is a count of seeds: 20 of 20 came back, and at most 14 % of others do not, at 95 % confidence. It says
// nothing about another trigger, rate or capacity. Only arithmetic speaks of every trigger: if the attempts of a storm are
// fewer than the backend completes, its queue shrinks whatever has filled it.
//
// # Pure functions
//
// Every result depends on the arguments alone: no function reads a clock or sends anything, and the same seed gives the
// same numbers on every platform. The policy's Rand and Observe are never called. Its Gate, Budget and Pay are state of a
// running program and are refused; a Fleet has its own Budget.
//
// This package may change until it says otherwise.
package retryplan
