package retryconf_test

import (
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func BenchmarkRefPolicy(b *testing.B) {
	var c retryconf.Catalog
	ref := c.Define("x", retry.Standard())
	b.ReportAllocs()
	for b.Loop() {
		ref.Policy()
	}
}

func BenchmarkParse(b *testing.B) {
	data := []byte(`{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = retryconf.Parse(data, retryconf.Spec{}, retryconf.ServiceLimits())
	}
}
