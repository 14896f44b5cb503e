// Package bench compares retry with other libraries that do the same work: "go run ./bench/cmd/report" measures them in
// turns and writes RESULTS.md. It is a module of its own, so that who imports retry gets none of them.
package bench
