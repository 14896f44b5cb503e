// Package retryslog writes log records of retries through log/slog. Observe returns a function for Policy.Observe:
//
//	policy.Observe = retryslog.Observe(logger, retryslog.Options{})
//
// # Records
//
// There is one record for each retry, written before the wait, and one for the end of each run, unless the run ended at
// the first attempt with a success or an answer, or was canceled before a retry was due. The last failed attempt
// is in the record of the end and does not have one of its own.
//
//	event                           message                  level
//	a retry is due after delay      retry: attempt failed    Options.Retry, Warn by default
//	a run failed                    retry: gave up           Options.Failure, Error by default
//	a layer below had given up      retry: gave up           Options.Below, Warn by default
//	the same at first try           retry: not retried       Options.Below
//	a terminal error at first try   retry: not retried       Options.Terminal, Warn by default
//	a 404 or another answer         retry: not retried       Options.Terminal, no record by default
//	the same in doubt               retry: gave up           Options.Failure, if Options.Terminal is nil
//	a run canceled after that       retry: canceled          Options.Canceled, that of retries by default
//	a run canceled before a retry   retry: canceled          Options.Canceled, no record by default
//	success after retries           retry: succeeded         Options.Recovery, Debug by default
//	success at first try            retry: succeeded         Options.FirstAttempt, no record by default
//
// Messages and keys are stable. They do not change within a major version. The keys are constants too, in this order:
//
//	key             kind       where               value
//	policy          string     everywhere          Policy.Name, cut after 128 bytes, or absent if it is empty
//	attempt         int64      attempt failed      the number of the attempt that failed
//	attempts        int64      at the end          how many attempts the run made
//	status          string     everywhere          retry.Status, such as waiting_retry
//	reason          string     every failed run    retry.Reason
//	ended_by_gate   bool       gave up             true if a deferral of Policy.Gate ended the run, or absent
//	inner_gave_up   bool       every failed run    true if the run ended because a layer below had given up, or absent
//	in_doubt        bool       every failed run    true if the work may have been done (retry.IsAmbiguous), or absent
//	delay           duration   attempt failed      the wait until the next attempt
//	duration        duration   attempt failed      how long the attempt took
//	elapsed         duration   everywhere          how long the run has taken, waits included, up to the end of the attempt
//	error           error      not after success   the error of the attempt, or of the last one of the run
//	cause           error      gave up, canceled   context.Cause of the caller's context, if that says more than reason
//	request         group      everywhere          the request that failed, if the error has it, see Requests
//	job             group      everywhere          id and kind of the job, if the run is one of package retryjob
//
// # Chains of services
//
// If services call each other and each of them retries and logs, one failure has one Error, in the service whose run
// ended for a reason of its own. Its clients learn from X-Should-Retry or a pushback that it has given up, and log a
// Warn with inner_gave_up=true. So alert on Error. Doubt is an Error where it arises, and above that a Warn with
// in_doubt=true.
//
// To find a failing service that does not log, start at the topmost Warn with inner_gave_up=true. Its request has the
// host or the method that was called. Go on in the log of that service. The last such Warn leads to the service that
// failed. For a client of a service that does not log, or whose log is not yours, set Options.Below to slog.LevelError.
//
// Two runs in one process, one of them in the other, have a record each. A run that repeats work that was given up below, as
// retry.Do does by default, and uses up its attempts fails for a reason of its own.
//
// # Errors
//
// The values of error and cause are errors. In a ReplaceAttr, errors.As and errors.Is find the error that the attempt
// returned. The text is built with the record. It is one line of bounded length (see Options.MaxErrorText). Line
// breaks, including those of Unicode, become "; ", and bytes that are not UTF-8 become U+FFFD. The policy's name is
// cleaned and shortened in the same way. If no attempt was made, error is the error of the caller's context, if it
// ended.
//
// # Requests
//
// If an error in the chain of error is a slog.LogValuer whose value is a group, that group is logged as request.
// It has method, host, path and status with package retryhttp, method and code with contrib/retrygrpc. Give your own errors a
// LogValue method to log their requests. A success after retries has the request of its last failure, without the keys
// status, code and reason. Its values are bounded as texts are.
//
// The text of an error is logged as it is. The *url.Error of an http.Client has the whole URL. A retry.Do around http.Get
// logs the tokens in a query. The errors of package retryhttp do not have the query.
//
// # Source
//
// The records do not have a source position, even with slog.HandlerOptions.AddSource. The only one available is a line
// of this package, which does not help. The call that retries cannot be found reliably. A job does not have one, and
// there are frames of other packages between a client and its transport. Name the policy after the call instead, or add
// attributes with Options.Attrs.
//
// This package is of the stable core. Its names are meant for v1.
package retryslog
