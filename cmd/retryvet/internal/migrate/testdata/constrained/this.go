//go:build !other

package constrained

func mark(err error) error { return err }
