// Package in makes none of its own.
package in

import "example.com/x"

// Work fails for good.
func Work() error { return x.Work() }
