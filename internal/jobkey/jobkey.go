// Package jobkey has the context keys by which package retryjob says which job a run or a handler belongs to.
package jobkey

// Key is a context key. In the context that Policy.Observe gets for a job, its value is a slog.LogValuer for a group
// that names the job. The context of the job's handler has no such value: a run that the handler makes is not the job.
type Key struct{}

// Handler is the context key of a job's handler. Its value is a slog.LogValuer for a group whose first attribute is the
// job's ID.
type Handler struct{}
