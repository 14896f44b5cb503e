package literal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
)

func TestCompact(t *testing.T) {
	for text, want := range map[string]string{
		"is below Base 2m0s": "is below Base 2m", "1h0m0s, 30m0s and 1h30m0s": "1h, 30m and 1h30m", "10m0s": "10m", "10s 1m10s 1h0m1s": "10s 1m10s 1h0m1s",
		"0s": "0s", "-1h0m0s": "-1h", "uniform 1m0s 20h0m0s": "uniform 1m 20h", "2562047h47m16s": "2562047h47m16s", "1m0s5": "1m0s5",
	} {
		require.Equal(t, want, literal.Compact(text))
	}
	const document = `{"name": "1m0s", "base": "1m0s", "delays": ["1h0m0s",
		"0s"], "note": "\"base\": \"1m0s\"", "duration":"uniform 1m0s 2h0m0s"}`
	require.Equal(t, `{"name": "1m0s", "base": "1m", "delays": ["1h",
		"0s"], "note": "\"base\": \"1m0s\"", "duration":"uniform 1m 2h"}`, literal.CompactJSON(document))
}
