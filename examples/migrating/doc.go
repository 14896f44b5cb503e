// Package migrating holds the call-sites of docs/migrating.md: the same call by other libraries and by retry, compiled
// and run side by side in virtual time. It is all tests; nothing is exported.
//
// The files named for a library have its call-sites, those that begin with after have ours, and those that end with
// _differs_test.go hold each difference that the document states, with its numbers.
package migrating
