// Package jobkey has the context key by which package retryjob says that a run is that of a job.
package jobkey

// Key is a context key. In the context that Policy.Observe gets for a job, its value is a slog.LogValuer for a group
// that names the job. The context of the job's handler has no such value: a run that the handler makes is not the job.
type Key struct{}
