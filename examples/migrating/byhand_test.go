package migrating_test

import (
	"context"
	"errors"
	"time"
)

func (c client) byHand(ctx context.Context) (s string, err error) {
	for i := range 5 {
		s, err = c.fetch(ctx)
		if err == nil || errors.Is(err, errNotFound) {
			return s, err
		}
		<-time.After(100 * time.Millisecond << i)
	}
	return s, err
}
