package main

import (
	"context"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
)

// reads sends a command to a Redis that is still loading.
func reads(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	redis, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer redis.Close()
	redis.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
		loading := strings.EqualFold(command, "GET") && !note()
		if loading {
			peer.WriteError("LOADING Redis is loading the dataset in memory")
		}
		return loading
	})

	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{redis.Addr()}, DisableCache: true, ForceSingleClient: true,
		RetryDelay: func(attempt int, _ rueidis.Completed, _ error) time.Duration { // from 1
			if attempt >= policy.MaxAttempts {
				return -1 // otherwise there is no end, except the context's
			}
			return delay(attempt)
		},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	err = client.Do(ctx, client.B().Get().Key("key").Build()).Error()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}
