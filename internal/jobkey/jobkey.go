// Package jobkey is how a report about a run learns that the run is a job, since the rooms do not import each other.
package jobkey

// Key is a context key. The context in which Policy.Observe is called about a job has under it a slog.LogValuer, whose
// value is a group that names the job. The context of the job's handler has none: a run that the handler makes is not
// the job.
type Key struct{}
