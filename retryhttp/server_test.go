package retryhttp_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

func TestAttemptFromRequest(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []string
		want   int
	}{
		{name: "an absent header is the first attempt", want: 1},
		{name: "1 is the first attempt", values: []string{"1"}, want: 1},
		{name: "3 is the second retry", values: []string{"3"}, want: 3},
		{name: "spaces around are ignored", values: []string{" 3\t"}, want: 3},
		{name: "leading zeros are digits", values: []string{"003"}, want: 3},
		{name: "0 is below 1", values: []string{"0"}, want: 1},
		{name: "a negative number is junk", values: []string{"-3"}, want: 1},
		{name: "a sign is junk", values: []string{"+3"}, want: 1},
		{name: "a fraction is junk", values: []string{"3.0"}, want: 1},
		{name: "an underscore is junk", values: []string{"1_0"}, want: 1},
		{name: "a hexadecimal number is junk", values: []string{"0x3"}, want: 1},
		{name: "an empty value is junk", values: []string{""}, want: 1},
		{name: "a word is junk", values: []string{"third"}, want: 1},
		{name: "a list is junk", values: []string{"3, 3"}, want: 1},
		{name: "the same number twice is that number", values: []string{"3", "03"}, want: 3},
		{name: "two numbers contradict each other", values: []string{"2", "3"}, want: 1},
		{name: "a number and junk contradict each other", values: []string{"3", "x"}, want: 1},
		{name: "the largest number fits", values: []string{"2147483647"}, want: math.MaxInt32},
		{name: "one more saturates", values: []string{"2147483648"}, want: math.MaxInt32},
		{name: "a thousand digits saturate", values: []string{strings.Repeat("9", 1000)}, want: math.MaxInt32},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header["Retry-Attempt"] = row.values
			require.Equal(t, row.want, retryhttp.AttemptFromRequest(r, ""))
			require.Equal(t, row.want, retryhttp.AttemptFromRequest(r, "retry-attempt"), "the name's case does not matter")

			r.Header = http.Header{"X-Try": row.values, "Retry-Attempt": {"9"}}
			require.Equal(t, row.want, retryhttp.AttemptFromRequest(r, "X-Try"), "another name can be used")
		})
	}
}

func TestSetRetryAfter(t *testing.T) {
	for _, row := range []struct {
		name string
		d    time.Duration
		want []string
	}{
		{name: "zero removes the header", d: 0},
		{name: "a negative duration removes the header", d: -time.Second},
		{name: "the least duration removes the header", d: math.MinInt64},
		{name: "a nanosecond rounds up", d: 1, want: []string{"1"}},
		{name: "a second is exact", d: time.Second, want: []string{"1"}},
		{name: "a nanosecond more rounds up", d: time.Second + 1, want: []string{"2"}},
		{name: "a nanosecond less rounds up", d: 2*time.Second - 1, want: []string{"2"}},
		{name: "two minutes are seconds", d: 2 * time.Minute, want: []string{"120"}},
		{name: "the largest duration rounds up", d: math.MaxInt64, want: []string{"9223372037"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header()["Retry-After"] = []string{"77", "78"}
			retryhttp.SetRetryAfter(w, row.d)
			require.Equal(t, row.want, w.Header()["Retry-After"])
		})
	}
}

func TestHandlerRecordsWhatItsRequestsCall(t *testing.T) {
	for name, values := range map[string][]string{"no header": nil, "1": {"1"}, "junk": {"first"}, "3": {"3"}} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header["Retry-Attempt"] = values
			retryhttp.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resp, err := (&retryhttp.Transport{Base: always(404), Policy: atOnce}).RoundTrip(get(r.Context()))
				require.NoError(t, err)
				o, err := retryhttp.OutcomeOf(resp, nil)
				require.NoError(t, err)
				require.Equal(t, []any{retry.Succeeded, 1}, []any{o.Status, o.Attempts})
			}), retryhttp.HandlerOptions{}).ServeHTTP(httptest.NewRecorder(), r)
		})
	}
}

func TestHandlerOfNothingAnswers500(t *testing.T) {
	w := httptest.NewRecorder()
	retryhttp.Handler(nil, retryhttp.HandlerOptions{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "retryhttp: Handler has no next handler\n", w.Body.String())
}

func TestHandlerReadsTheHeaderThatItsClientsSend(t *testing.T) {
	for name, want := range map[string]int{"": 2, retryhttp.AttemptHeader: 2, "X-Try": 3} {
		got := 0
		trust := func(*http.Request) bool { return true }
		handler := retryhttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = retry.AttemptNumber(r.Context())
		}), retryhttp.HandlerOptions{Trust: trust, AttemptHeader: name})
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(retryhttp.AttemptHeader, "2")
		r.Header.Set("X-Try", "3")
		handler.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, got, name)
	}
}

func TestTrustIsAskedOnlyAboutWhatAClientSays(t *testing.T) {
	asked := 0
	handler := retryhttp.Handler(nil, retryhttp.HandlerOptions{Trust: func(*http.Request) bool { asked++; return true }})
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	require.Zero(t, asked)
}
