package migrate

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// literal returns a policy with these fields as Go source.
func literal(fields map[string]string) string {
	var b strings.Builder
	for _, name := range []string{"MaxAttempts", "Backoff", "TTL", "Classify"} {
		if text := fields[name]; text != "" {
			fmt.Fprintf(&b, "%s: %s,\n", name, text)
		}
	}
	return ours + ".Policy{\n" + b.String() + "}"
}

// written returns b as Go source, with base for Base if that is not "".
func written(b retry.Backoff, base string) string {
	var parts []string
	add := func(name, text string) { parts = append(parts, name+": "+text) }
	if b.Mode == retry.List {
		var delays []string
		for _, d := range b.Delays {
			delays = append(delays, duration(d))
		}
		add("Delays", "[]time.Duration{"+strings.Join(delays, ", ")+"}")
	} else {
		if b.Mode != retry.Exponential {
			add("Mode", ours+"."+map[retry.Mode]string{retry.Fixed: "Fixed", retry.Linear: "Linear"}[b.Mode])
		}
		add("Base", cmp.Or(base, duration(b.Base)))
	}
	if b.Mode == retry.Exponential && b.Factor != 2 || b.Mode == retry.Linear && b.Factor != 1 {
		add("Factor", fmt.Sprint(b.Factor))
	}
	if b.Cap == math.MaxInt64 {
		add("Cap", "1<<63 - 1")
	} else if b.Cap != 0 {
		add("Cap", duration(b.Cap))
	}
	if b.Jitter != retry.NoJitter {
		add("Jitter", ours+"."+[]string{"", "FullJitter", "EqualJitter", "RatioJitter"}[b.Jitter])
	}
	if b.JitterRatio != 0 {
		add("JitterRatio", fmt.Sprint(b.JitterRatio))
	}
	return ours + ".Backoff{" + strings.Join(parts, ", ") + "}"
}

// duration returns d as Go source.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"}} {
		if d == unit.size {
			return "time." + unit.name
		} else if d > 0 && d%unit.size == 0 {
			return fmt.Sprintf("%d * time.%s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprint(int64(d))
}
