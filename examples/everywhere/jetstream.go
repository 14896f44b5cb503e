package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jetStream consumes a message whose work fails.
func jetStream(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) (err error) {
	dir, err := os.MkdirTemp("", "everywhere")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}

	conn, err := nats.Connect("", nats.InProcessServer(s),
		nats.CustomReconnectDelay(policy.DrawDelay)) // from 1, after a pass over all servers
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "work", Subjects: []string{"work"}}); err != nil {
		return err
	}
	consumer, err := js.CreateConsumer(ctx, "work", jetstream.ConsumerConfig{
		AckPolicy:  jetstream.AckExplicitPolicy,
		MaxDeliver: policy.MaxAttempts, // and no BackOff, which would be added to NakWithDelay
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		if note() {
			done <- msg.Ack()
			return
		}
		meta, err := msg.Metadata()
		if err == nil {
			err = msg.NakWithDelay(delay(int(meta.NumDelivered))) // from 1
		}
		if err != nil {
			done <- err
		}
	})
	if err != nil {
		return err
	}
	defer consuming.Stop()
	if _, err = js.Publish(ctx, "work", nil); err != nil {
		return err
	}
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
