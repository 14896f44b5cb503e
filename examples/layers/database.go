package main

import (
	"context"
	"errors"
	"sync/atomic"
)

// database is a fake of one, which counts its queries. It refuses each query or, if it hangs, never answers.
type database struct {
	hangs   bool
	queries atomic.Int64
}

func (d *database) query(ctx context.Context) error {
	d.queries.Add(1)
	if d.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("sorry, too many clients already")
}
