// Package migrating contains the call sites of docs/migrating.md and its pages: the same call with other libraries and with retry,
// compiled and run side by side in virtual time. It has tests only.
//
// The files named for a library have its call sites, those that begin with after have ours, and those that end with
// _differs_test.go test each difference that the document states, with its numbers.
package migrating
