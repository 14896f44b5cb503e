package retryjob_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestErrorsOfOneKindHaveOneFingerprint(t *testing.T) {
	for _, row := range []struct {
		name  string
		want  string
		texts []string
	}{
		{"a refused connection to any address", "dial tcp #: connect: connection refused", []string{
			"dial tcp 10.0.0.7:5432: connect: connection refused", "dial tcp [2001:db8::1]:5432: connect: connection refused",
			"dial tcp db-3.internal:5432: connect: connection refused",
		}},
		{"a call of any URL", "Post #: context deadline exceeded", []string{
			`Post "https://api.example.com/v1/charges/ch_17": context deadline exceeded`,
			"Post https://api.example.com/v1?a=b: context deadline exceeded",
		}},
		{"any time", "no answer in # ms", []string{"no answer in 1500 ms", "no answer in 1.5 ms", "no answer  in\n7 ms"}},
		{"any identifier", "order # is locked", []string{
			"order 123 is locked", "order 4f9a2b7c1d is locked", "order 8d3e5a10-11aa-4bcd-9e0f-a1b2c3d4e5f6 is locked", `order "A-7" is locked`,
			"order 0xff is locked", "order 'A 7' is locked",
		}},
		{"any customer", "mailbox # is full", []string{"mailbox ann@example.com is full", "mailbox bob.b+x@mail.example.com is full"}},
		{"any parameter", "refused: user=#, token=#", []string{"refused: user=ann, token=hush", "refused: user=bob, token=x7"}},
		{"words with an apostrophe are words", "can't reach it, won't try", []string{"can't reach it, won't try"}},
		{"words of hexadecimal letters are words", "deadbeef defaced a facade", []string{"deadbeef defaced a facade"}},
		{"nothing", "", []string{"", "  "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, text := range row.texts {
				require.Equal(t, row.want, retryjob.Fingerprint(text), text)
			}
		})
	}
}

func TestErrorsOfTwoKindsHaveTwoFingerprints(t *testing.T) {
	texts := []string{
		"dial tcp 10.0.0.7:5432: connect: connection refused", "dial tcp 10.0.0.7:5432: i/o timeout", "status 503 Service Unavailable",
		"status 502 Bad Gateway", "the card was declined",
	}
	seen := map[string]bool{}
	for _, text := range texts {
		seen[retryjob.Fingerprint(text)] = true
	}
	require.Len(t, seen, len(texts))
}

func TestTheCauseOfAJob(t *testing.T) {
	long := strings.Repeat("ä", 80) + ": " + strings.Repeat("b", 80)
	for _, row := range []struct {
		name    string
		status  retryjob.Status
		attempt retryjob.Attempt
		want    string
	}{
		{"is the code", retryjob.DeadLettered, retryjob.Attempt{Code: "503", Err: "status 503"}, "503"},
		{"is the fingerprint without a code", retryjob.FailedNoRetries, retryjob.Attempt{Err: "no route to 10.0.0.1"}, "no route to #"},
		{"has the beginning and the end of a long text", retryjob.Expired, retryjob.Attempt{Err: long}, strings.Repeat("ä", 33) + "…" + strings.Repeat("b", 66)},
		{"is empty while it may succeed", retryjob.WaitingRetry, retryjob.Attempt{Err: "no route"}, ""},
		{"is empty if it was canceled", retryjob.Canceled, retryjob.Attempt{Err: "no route"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := retryjob.Record{Status: row.status, Reason: retry.TerminalError, History: []retryjob.Attempt{row.attempt}}
			require.Equal(t, row.want, r.Cause())
		})
	}
	require.Empty(t, (&retryjob.Record{Status: retryjob.Expired}).Cause(), "nothing was attempted")
}

func FuzzFingerprint(f *testing.F) {
	f.Add(`Post "https://a.example/1": dial tcp 10.0.0.1:80: connect: connection refused`)
	f.Add("can't\x00'")
	f.Fuzz(func(t *testing.T, text string) {
		require.False(t, strings.ContainsAny(retryjob.Fingerprint(text), "0123456789\n"))
		cause := (&retryjob.Attempt{Err: text}).Cause()
		require.LessOrEqual(t, utf8.RuneCountInString(cause), 100)
	})
}
