package retryhedge_test

import (
	"context"
	"testing"
	"time"

	"github.com/retrygo/retry/retryhedge"
)

func BenchmarkFastCall(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ok := func(context.Context) error { return nil }
	b.Run("bare timer and context", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithCancel(ctx)
			timer := time.AfterFunc(time.Minute, func() {})
			_ = ok(ctx)
			timer.Stop()
			cancel()
		}
	})
	for name, p := range map[string]retryhedge.Policy{
		"no hedges": {}, "fixed": {Delay: time.Minute},
		"tracked": {Tracker: tracker(b, retryhedge.TrackerConfig{Min: time.Minute, Max: time.Hour})},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = retryhedge.Do(ctx, p, ok)
			}
		})
	}
}
