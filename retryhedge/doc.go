// Package retryhedge starts a second call beside one that is slow, and takes the answer that comes first.
//
// A retry waits for a failure. A call that is merely slow (a pause, a lost packet, a dead connection, one slow replica)
// fails nothing, and makes the slowest percent of calls. A hedge is a call beside it:
//
//	tracker, err := retryhedge.NewTracker(retryhedge.TrackerConfig{Share: 0.05})
//	...
//	p := retryhedge.Policy{Tracker: tracker, Budget: budget}
//	price, err := retryhedge.DoValue(ctx, p, readPrice, nil)
//
// Nothing has failed when a hedge starts, so it is not a retry and not an attempt: retry.AttemptNumber is the same for
// all calls of an attempt. Inside a retry.Do each attempt is hedged, and its AttemptTimeout covers all of its calls.
//
// # What it costs
//
// A hedge takes a token of the Budget that pays for retries as well: when everything is slow, every call is due for a
// hedge, and the budget is what keeps the load from doubling. Without a token there is no hedge, and the call goes on. A
// call within the delay costs a timer and a context, and starts no goroutine.
//
// # When not to hedge
//
// Do not hedge what must not run twice, calls of very uneven cost (the most expensive ones would be doubled), and in more
// than one layer of a chain. A hedge helps if its slowness is independent of that of the first call: it needs another
// connection or server, which fn can choose by IsHedge. See the section about slow calls in docs/guide.md.
//
// The package imports the standard library and package retry.
//
// This package is of the stable core: its names are meant for v1.
package retryhedge
