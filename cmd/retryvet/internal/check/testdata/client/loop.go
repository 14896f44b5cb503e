package client

import (
	"context"
	"time"
)

func (c *client) wait(ctx context.Context) error {
	var err error
	for range 3 {
		if _, err = c.get(ctx, "ready"); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
