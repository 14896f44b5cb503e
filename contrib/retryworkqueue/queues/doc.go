// Package queues tests package retryworkqueue with the queues of client-go. It is a module of its own, so that client-go is
// not required by the users of retryworkqueue.
package queues
