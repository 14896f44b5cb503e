// Package controllers holds tests only. They run a Reconciler and a Limiter of retryworkqueue in controllers of
// controller-runtime, with both of its queues, in virtual time. They live in a module of their own, because
// controller-runtime requires more than 50 others.
package controllers
