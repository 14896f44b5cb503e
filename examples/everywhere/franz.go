package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// franz asks a Kafka broker for a producer's ID while its coordinator is still loading.
func franz(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return err
	}
	defer cluster.Close()
	cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if note() {
			return nil, nil, false
		}
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		return resp, nil, true
	})

	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.RetryBackoffFn(delay), // from 1
		kgo.RequestRetries(policy.MaxAttempts-1))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Request(ctx, kmsg.NewPtrInitProducerIDRequest())
	return err
}
