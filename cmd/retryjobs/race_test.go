//go:build race

package main

// raced is whether the race detector is in.
const raced = true
