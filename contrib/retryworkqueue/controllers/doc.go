// Package controllers holds tests only. They run a Reconciler and a Limiter of retryworkqueue in controllers of
// controller-runtime, with both of its queues, in virtual time.
//
// They are a module of their own outside of the workspace, because building controller-runtime takes minutes:
//
//	GOWORK=off go test .
package controllers
