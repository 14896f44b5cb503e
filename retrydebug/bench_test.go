package retrydebug_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
)

var (
	firstTry = retry.Event{Policy: "p", Outcome: &retry.Outcome{Policy: "p", Status: retry.Succeeded, Attempts: 1, Elapsed: time.Millisecond}}
	failed   = retry.Event{
		Policy: "p", Attempt: retry.Attempt{Number: 1, Duration: time.Millisecond, Class: retry.Retryable, Err: errRefused, Delay: time.Second},
		Decision: retry.Decision{Status: retry.WaitingRetry, Delay: time.Second},
	}
	gaveUp = eventOf(retry.DeadLettered, retry.AttemptsExhausted)
)

// eventOf returns the end of a run of four attempts.
func eventOf(status retry.Status, reason retry.Reason) retry.Event {
	o := retry.Outcome{Policy: "p", Status: status, Reason: reason, Attempts: 4, Elapsed: 4 * time.Second}
	for number := 1; number <= 4; number++ {
		o.History = append(o.History, retry.Attempt{Number: number, Start: time.Now(), Duration: time.Millisecond, Class: retry.Retryable, Err: errRefused, Delay: time.Second})
	}
	return retry.Event{Policy: "p", Outcome: &o, Err: &retry.Error{Outcome: o, Last: errRefused}}
}

// BenchmarkObserve measures an event. "gave up" is a run of which 16 a second are kept, and "kept" is one that is kept.
func BenchmarkObserve(b *testing.B) {
	for _, row := range []struct {
		name  string
		event retry.Event
	}{{"first try", firstTry}, {"failed attempt", failed}, {"gave up", gaveUp}} {
		b.Run(row.name, func(b *testing.B) {
			live, ctx := retrydebug.New(retrydebug.Options{}), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				live.Observe(ctx, row.event)
			}
		})
		b.Run(row.name+", 8 goroutines", func(b *testing.B) {
			live, ctx := retrydebug.New(retrydebug.Options{}), context.Background()
			b.SetParallelism(4) // of 2 processors
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					live.Observe(ctx, row.event)
				}
			})
		})
	}
	b.Run("kept", func(b *testing.B) {
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			live := retrydebug.New(retrydebug.Options{})
			for range 10 {
				live.Observe(ctx, gaveUp)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10, "ns/run")
	})
}

func BenchmarkPage(b *testing.B) {
	live := busyPage(100)
	for _, accept := range []string{"text/html", "text/plain", "application/json"} {
		b.Run(accept, func(b *testing.B) {
			b.ReportAllocs()
			var w *httptest.ResponseRecorder
			for b.Loop() {
				w = get(live, "", accept)
			}
			b.ReportMetric(float64(w.Body.Len()), "bytes")
		})
	}
}

func BenchmarkRedactSecrets(b *testing.B) {
	for _, text := range []string{errRefused.Error(), `Get "https://shop:hush@inventory.internal/v1/items?token=hush": dial tcp: i/o timeout`} {
		b.Run(text[:4], func(b *testing.B) {
			for b.Loop() {
				retrydebug.RedactSecrets(text)
			}
		})
	}
}
