package migrate

import (
	"fmt"
	"go/ast"
	"go/types"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// plan is the replacement of a site.
type plan struct {
	ctx      ast.Expr // nil means context.Background()
	attempts string
	texts    map[string]string // the fields of the Backoff
	ttl      string
	classify string
	observe  string
	value    bool                        // DoValue
	known    map[types.Object]*pause     // the variables that are followed
	drop     map[types.Object][]ast.Node // the statements that make them
}

// literal returns the policy as Go source.
func (p *plan) literal() string {
	var b strings.Builder
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s,\n", name, text)
		}
	}
	field("MaxAttempts", p.attempts)
	var parts []string
	for _, name := range []string{"Mode", "Base", "Factor", "Cap", "Delays", "Jitter", "JitterRatio"} {
		if text := p.texts[name]; text != "" {
			parts = append(parts, name+": "+text)
		}
	}
	field("Backoff", ours+".Backoff{"+strings.Join(parts, ", ")+"}")
	field("TTL", p.ttl)
	field("Classify", p.classify)
	field("Observe", p.observe)
	return ours + ".Policy{\n" + b.String() + "}"
}

// texts returns the fields of b as Go source.
func texts(b retry.Backoff) map[string]string {
	t := map[string]string{"Base": source(b.Base)}
	switch {
	case b.Mode == retry.List:
		var delays []string
		for _, d := range b.Delays {
			delays = append(delays, source(d))
		}
		return map[string]string{"Delays": "[]time.Duration{" + strings.Join(delays, ", ") + "}"}
	case b.Mode == retry.Fixed:
		t["Mode"] = ours + ".Fixed"
	case b.Mode == retry.Linear:
		t["Mode"] = ours + ".Linear"
		if b.Factor != 1 {
			t["Factor"] = fmt.Sprint(b.Factor)
		}
	case b.Factor != 2:
		t["Factor"] = fmt.Sprint(b.Factor)
	}
	if b.Cap == math.MaxInt64 {
		t["Cap"] = "1<<63 - 1"
	} else if b.Cap != 0 {
		t["Cap"] = source(b.Cap)
	}
	switch b.Jitter {
	case retry.FullJitter:
		t["Jitter"] = ours + ".FullJitter"
	case retry.EqualJitter:
		t["Jitter"] = ours + ".EqualJitter"
	case retry.RatioJitter:
		t["Jitter"], t["JitterRatio"] = ours+".RatioJitter", fmt.Sprint(b.JitterRatio)
	}
	return t
}

// source returns d as Go source.
func source(d time.Duration) string {
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
