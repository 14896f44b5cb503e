// Package bench holds benchmarks only. They compare retryhttp with other retrying HTTP clients, over the same round tripper
// in memory. They live in a module of their own, so that who imports retry gets none of those clients.
package bench
