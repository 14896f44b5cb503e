package retry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestObservers(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	event := retry.Event{Policy: "orders", Decision: waiting(sec)}
	for _, row := range []struct {
		name   string
		panics []any // what each observer panics with; nil for none
		want   any
	}{
		{name: "none"},
		{name: "each is called, in order", panics: []any{nil, nil, nil}},
		{name: "the panic of the first hides nothing from the rest", panics: []any{"first", nil, nil}, want: "first"},
		{name: "the panic of the last", panics: []any{nil, nil, "last"}, want: "last"},
		{name: "the first of two panics is the one that propagates", panics: []any{nil, "second", "third", nil}, want: "second"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var called []int
			observers := []func(context.Context, retry.Event){nil}
			for i, with := range row.panics {
				observers = append(observers, func(got context.Context, e retry.Event) {
					require.Equal(t, ctx, got)
					require.Equal(t, event, e)
					called = append(called, i)
					if with != nil {
						panic(with)
					}
				}, nil)
			}
			observe := retry.Observers(observers...)
			clear(observers) // they are copied
			require.Equal(t, row.want, func() (got any) {
				defer func() { got = recover() }()
				observe(ctx, event)
				return nil
			}())
			require.Len(t, called, len(row.panics))
			require.IsIncreasing(t, append([]int{-2, -1}, called...))
		})
	}
}

func ExampleObservers() {
	log := func(_ context.Context, e retry.Event) { fmt.Println("log:", e.Decision) }
	count := func(_ context.Context, e retry.Event) { fmt.Println("count:", e.Decision.Status) }
	p := retry.Policy{Observe: retry.Observers(log, count)}
	_ = retry.Do(context.Background(), p, func(context.Context) error { return nil })
	// Output:
	// log: succeeded
	// count: succeeded
}
