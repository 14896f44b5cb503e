// Package retrydebug is a page, /debug/retry, that shows the retries of a running service. It shows which policies fail
// and since when, whether work is in doubt, whether a budget is empty, and the last runs that failed. It ends with a table
// of what each state and reason means and what to do about it, which README.md has too.
//
//	live := retrydebug.New(retrydebug.Options{})
//	policy := live.Watch(retry.Policy{Name: "inventory", Budget: budget})
//	http.Handle("/debug/retry/", live)
//
// Page.Watch is for the place at which a policy is made. Where Policy.Observe is set anyway, Page.Observe goes there,
// with retry.Observers beside other observers. Page.ObserveHedge is for hedges, and Options.Catalog for a
// retryconf.Catalog.
//
// # The runs that are kept
//
// For each policy the page keeps counts of the last minute, of the last hour, and since it was made. A run that
// succeeds at its first attempt is only counted. The page also keeps the last 100 runs that did not succeed and the 20
// slowest of the last hour that succeeded after retries, with their first attempt and their newest seven. If there is
// no room, the page drops the oldest run of the largest group with the same policy and reason, so that a thousand
// timeouts do not push out the one terminal error. Of runs that fail alike, 16 are kept at once and then one a second.
//
// There are 100 policies at most, and a row for all others. All of it takes less than 1 MiB (TestTheMemoryIsBounded).
// An event takes less than 250 ns (BenchmarkObserve) and does not allocate. Two events are exceptions, the end of a run
// that is kept, and the first failed attempt of a policy in a second. For them the texts of errors are made, in the
// goroutine that retries.
//
// The figures are of this process since it started. A job of package retryjob is counted where its attempts are made.
//
// # Who may see it
//
// Only programs on the same machine may, unless Options.Allow is set (see IsLoopback). No header lets a client in. A
// reverse proxy on the same machine is such a program. The page refuses a request that a proxy has passed on, if the
// proxy has added X-Forwarded-For, Forwarded, Via or the like, or has kept the client's Host. A proxy that does
// neither, such as nginx with only a proxy_pass, is not recognized. Then configure it not to pass on /debug/, serve the
// page on a port of its own, or set Options.Allow.
//
// Texts of errors can have secrets. RedactSecrets, or Options.Redact, sees each before it is kept, and Options.HideErrors
// leaves them out. Of a request only method and host are shown, and of a job only the kind.
//
// # The forms
//
// A browser gets HTML, without a script, that is loaded again every 5 s. A program that asks for application/json gets
// the Snapshot as JSON, and curl a table:
//
//	curl localhost:8080/debug/retry/
//
// This package may change until it says otherwise. The JSON has a version of its own.
package retrydebug
