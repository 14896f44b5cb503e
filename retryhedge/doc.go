// Package retryhedge starts a second call beside one that is slow, and takes the answer that comes first.
//
// A retry waits for a failure. A call that is merely slow, because of a pause, a lost packet, a dead connection or one
// slow replica, does not fail. Such calls are the slowest percent. A hedge is a second call beside a slow one:
//
//	tracker, err := retryhedge.NewTracker(retryhedge.TrackerConfig{Share: 0.05})
//	...
//	p := retryhedge.Policy{Tracker: tracker, Budget: budget}
//	price, err := retryhedge.DoValue(ctx, p, readPrice, nil)
//
// No call has failed when a hedge starts, so it is neither a retry nor an attempt. retry.AttemptNumber is the same for
// all calls of an attempt. Inside a retry.Do each attempt is hedged, and its AttemptTimeout covers all of its calls. If
// both have the same Budget, set Policy.InRun.
//
// # Costs
//
// A hedge takes a token of the Budget that pays for retries as well. When everything is slow, every call is due for a
// hedge, and the budget keeps the load from doubling. Without a token there is no hedge, and the call goes on. A call
// within the delay costs a timer and a context, and starts no goroutine.
//
// # When not to hedge
//
// Do not hedge calls that must not run twice or whose costs are very uneven, since the most expensive ones would be
// doubled. Do not hedge in more than one layer of a chain. A hedge helps if it is not slow for the same reason as the
// first call. It needs another connection or server, which fn can choose by IsHedge. See the section about slow calls
// in docs/guide.md.
//
// The package imports the standard library and package retry.
//
// This package is of the stable core. Its names are meant for v1.
package retryhedge
