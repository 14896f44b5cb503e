package retryslog_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
)

// onlyWhatIsTheSame drops the times, which differ from run to run.
func onlyWhatIsTheSame(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, retryslog.KeyDuration, retryslog.KeyElapsed:
		return slog.Attr{}
	}
	return a
}

func ExampleObserve() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: onlyWhatIsTheSame}))
	policy := retry.Policy{
		Name:        "price",
		MaxAttempts: 3,
		Backoff:     retry.Backoff{Base: 10 * time.Millisecond},
		Observe:     retryslog.Observe(logger, retryslog.Options{}),
	}
	_ = retry.Do(context.Background(), policy, func(context.Context) error {
		return errors.New("503 Service Unavailable")
	})
	// Output:
	// level=WARN msg="retry: attempt failed" policy=price attempt=1 status=waiting_retry delay=10ms error="503 Service Unavailable"
	// level=WARN msg="retry: attempt failed" policy=price attempt=2 status=waiting_retry delay=20ms error="503 Service Unavailable"
	// level=ERROR msg="retry: gave up" policy=price attempts=3 status=dead_letter reason=attempts_exhausted error="503 Service Unavailable"
}

// Retries are Debug records here, and successes are logged after the level changes.
func ExampleOptions() {
	var level slog.LevelVar // Info
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: &level, ReplaceAttr: onlyWhatIsTheSame}))
	policy := retry.Policy{
		Name:    "price",
		Backoff: retry.Backoff{Base: 10 * time.Millisecond},
		Observe: retryslog.Observe(logger, retryslog.Options{Retry: slog.LevelDebug, Recovery: slog.LevelInfo}),
	}
	price := func(ctx context.Context) error {
		if retry.AttemptNumber(ctx) == 1 {
			return errors.New("503 Service Unavailable")
		}
		return nil
	}
	_ = retry.Do(context.Background(), policy, price)
	level.Set(slog.LevelDebug)
	_ = retry.Do(context.Background(), policy, price)
	// Output:
	// level=INFO msg="retry: succeeded" policy=price attempts=2 status=succeeded
	// level=DEBUG msg="retry: attempt failed" policy=price attempt=1 status=waiting_retry delay=10ms error="503 Service Unavailable"
	// level=INFO msg="retry: succeeded" policy=price attempts=2 status=succeeded
}

// declined is an error that describes its request, like those of package retryhttp.
type declined struct{ order string }

func (declined) Error() string          { return "card declined" }
func (d declined) LogValue() slog.Value { return slog.GroupValue(slog.String("order", d.order)) }

// A terminal error at the first attempt is not logged by default, since the caller gets it. Here it is logged at Info.
func ExampleOptions_terminal() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: onlyWhatIsTheSame}))
	policy := retry.Policy{Name: "charge", Observe: retryslog.Observe(logger, retryslog.Options{Terminal: slog.LevelInfo})}
	_ = retry.Do(context.Background(), policy, func(context.Context) error {
		return retry.Permanent(declined{"7"})
	})
	// Output:
	// level=INFO msg="retry: not retried" policy=charge attempts=1 status=dead_letter reason=terminal_error error="card declined" request.order=7
}

type tenantKey struct{}

// The attributes are in their own group, next to one from the caller's context.
func ExampleOptions_group() {
	logger := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: onlyWhatIsTheSame}))
	policy := retry.Policy{Name: "charge", MaxAttempts: 1}
	policy.Observe = retryslog.Observe(logger, retryslog.Options{
		Group: "retry",
		Attrs: func(ctx context.Context, _ retry.Event) []slog.Attr {
			return []slog.Attr{slog.Any("tenant", ctx.Value(tenantKey{}))}
		},
	})
	ctx := context.WithValue(context.Background(), tenantKey{}, "acme")
	_ = retry.Do(ctx, policy, func(context.Context) error { return errors.New("card declined") })
	// Output:
	// {"level":"ERROR","msg":"retry: gave up","retry":{"policy":"charge","attempts":1,"status":"dead_letter","reason":"attempts_exhausted","error":"card declined"},"tenant":"acme"}
}
