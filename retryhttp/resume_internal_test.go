package retryhttp

import (
	"math/big"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContentRange(t *testing.T) {
	for value, want := range map[string][3]int64{
		"bytes 0-99/1000":  {0, 99, 1000},
		"bytes 0-0/1":      {0, 0, 1},
		"Bytes 10-99/*":    {10, 99, unknown},
		"bytes */1000":     {-1, -1, 1000},
		"bytes */0":        {-1, -1, 0},
		"bytes 007-8/0009": {7, 8, 9},
		"bytes 0-9223372036854775805/9223372036854775806": {0, 1<<63 - 3, 1<<63 - 2},
	} {
		r, ok := parseSpan(value)
		require.True(t, ok, value)
		require.Equal(t, want, [3]int64{r.first, r.last, r.total}, value)
	}
	for _, value := range []string{"", "bytes", "bytes ", "bytes 0-99", "bytes 0-99/", "bytes 0-99/99", "bytes 9-8/10",
		"bytes */*", "bytes -9/10", "bytes 0-/10", "bytes 0/10", "bytes +1-2/3", "bytes 1-2/-3", "bytes 1-2/+3", "bytes=0-1/2",
		"bytes  0-1/2", " bytes 0-1/2", "bytes 0-1/2 ", "bytes 0 -1/2", "bytes 0-1/2,3-4/5", "items 0-1/2", "bytes 0-9223372036854775807/*",
		"bytes */9223372036854775807", "bytes 18446744073709551616-18446744073709551617/*", "bytes 0x1-2/3", "bytes *-*/3"} {
		_, ok := parseSpan(value)
		require.False(t, ok, value)
	}
	_, ok := rangeOf(nil)
	require.False(t, ok)
	_, ok = rangeOf(http.Header{"Content-Range": {"bytes 0-1/2", "bytes 0-1/2"}})
	require.False(t, ok)
}

var contentRangeForm = regexp.MustCompile(`^(?i:bytes) (?:(\*)|([0-9]+)-([0-9]+))/(?:(\*)|([0-9]+))$`)

// FuzzContentRange compares parseSpan with the grammar of RFC 9110, section 14.4, and numbers of any size.
func FuzzContentRange(f *testing.F) {
	for _, value := range []string{"bytes 0-99/1000", "bytes */7", "bytes 1-2/*", "bytes 9-8/7", "BYTES 00-01/02 "} {
		f.Add(value)
	}
	limit := big.NewInt(1<<63 - 1)
	f.Fuzz(func(t *testing.T, value string) {
		r, ok := parseSpan(value)
		m := contentRangeForm.FindStringSubmatch(value)
		if m == nil {
			require.False(t, ok)
			return
		}
		number := func(i int, otherwise *big.Int) *big.Int {
			if m[i] == "" {
				return otherwise
			}
			n, _ := new(big.Int).SetString(m[i], 10)
			return n
		}
		none := big.NewInt(-1)
		from, to, all := number(2, none), number(3, none), number(5, limit)
		want := to.Cmp(limit) < 0 && from.Cmp(to) <= 0 && to.Cmp(all) < 0 && (m[5] == "" || all.Cmp(limit) < 0) && m[1]+m[4] != "**"
		require.Equal(t, want, ok)
		if ok {
			require.Equal(t, []int64{from.Int64(), to.Int64(), all.Int64()}, []int64{r.first, r.last, r.total})
		}
	})
}
