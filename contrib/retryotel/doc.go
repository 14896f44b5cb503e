// Package retryotel reports runs of package retry to OpenTelemetry. Observe, in Policy.Observe, records metrics, adds
// events to the current span and creates a span for each job that has ended. Do and DoValue make a span for each run
// and each attempt, and Run for a run of another package. It imports OpenTelemetry's API only. It has no
// effect without an SDK.
//
// For HTTP, use the transport of otelhttp as the Base of a retryhttp.Transport. Each request that is sent then has a
// CLIENT span and a record of http.client.request.duration. Around the Transport it counts all sends of a run as one.
//
// # Metrics
//
// The scope of the metrics is github.com/retrygo/retry/contrib/retryotel:
//
//	name                    instrument       unit       attributes
//	retry.runs              counter          {run}      retry.policy, retry.status, retry.reason, retry.kind
//	retry.run.attempts      histogram        {attempt}  retry.policy, retry.kind
//	retry.run.duration      histogram        s          retry.policy, retry.kind
//	retry.attempts          counter          {attempt}  retry.policy, retry.class
//	retry.attempt.duration  histogram        s          retry.policy, retry.class
//	retry.delay             histogram        s          retry.policy
//	retry.budget.tokens     gauge            {token}    retry.budget
//	retry.budget.key.count  up-down counter  {key}      retry.budget
//	retry.budget.overflows  counter          {budget}   retry.budget
//	retry.hedge.count       counter          {call}     retry.policy, retry.hedge
//	retry.hedge.calls       counter          {call}     retry.policy
//	retry.job.count         up-down counter  {job}      retry.engine, retry.status
//	retry.job.recurring     up-down counter  {job}      retry.engine, retry.status
//	retry.job.lag           gauge            s          retry.engine
//	retry.schedule.overdue  gauge            s          retry.engine, retry.schedule
//
// retry.status and retry.reason have the texts of retry.Status and retry.Reason. In metrics a success has no
// retry.reason, and a run of a policy without a name no retry.policy. A terminal error that ended a run because a layer
// below had given up (retry.Outcome.InnerGaveUp) is the reason given_up_below. A run that ended with a terminal error
// at its first attempt is not_retried, not dead_letter. A retry was not allowed, because of a mistake of the caller, or
// because the call must not be repeated, such as a POST after a 503. retry.kind is succeeded_without_retry,
// succeeded_with_retry, failed_without_retry or failed_with_retry. A run whose caller's context had already ended is
// failed_without_retry. retry.hedge is not_needed, not_made, refused, lost or won. retry.class is succeeded, retryable or
// terminal. The duration of an attempt that succeeded counts from the time at which it was due. The buckets of the
// histograms reach from 1ms to a day and from 0 to 100 attempts. A View of the SDK can change them.
//
// The number of series is bounded. Statuses, reasons, kinds and classes are enumerations, and runs of the 81st policy
// name and further ones count under "_OTHER", so that the SDK's limit of 2,000 series is not reached. No attribute comes
// from a request or an error.
//
// # Spans
//
// In spans retry.policy and retry.attempt are those of the run, attempt or event. retry.run.policy, retry.status,
// retry.reason and retry.attempts are those of the span's run, or of the last run that ended below the span.
//
// error.type is the result of an ErrorType method in the error's chain, such as the status of an HTTP attempt ("503"),
// retryhttp's Reason ("conn_refused") or "attempt_timeout" of a gRPC call. Otherwise it is the code of a gRPC status
// ("UNAVAILABLE"), "timeout", "canceled", or the Go type below the marks of retry and fmt.Errorf. The error.type of a run
// is that of its last error.
//
// # Texts
//
// Names and errors that are not UTF-8 are converted, since OTLP would refuse the whole export because of one of them.
// An error's text is cut to 1024 bytes, a policy's name to 128. An error whose Error method panics is shown as package fmt
// shows it. A panic of another method of an error passes through, as in retry.Do.
//
// This package may change until it says otherwise.
package retryotel
