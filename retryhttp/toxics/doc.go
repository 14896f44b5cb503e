// Package toxics holds tests only. They show what retryhttp does on real connections that go wrong: slow, stalled, cut,
// reset and refused, by a toxiproxy in front of a server in the same process. They live in a module of their own, so
// that a program that imports retryhttp gets no proxy.
package toxics
