// Package controllers tests retryworkqueue in controllers of controller-runtime, with both of its queues, in virtual
// time. It is a module of its own and no part of the workspace, because building controller-runtime takes minutes: run
// its tests with GOWORK=off.
package controllers
