package hints_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/retrygo/retry/retryhttp/hints"
)

func ExampleRateLimit() {
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
	resp.Header.Set("Date", "Tue, 14 Nov 2023 22:13:20 GMT") // the Unix time 1700000000
	resp.Header.Set("X-RateLimit-Remaining", "0")
	resp.Header.Set("X-RateLimit-Reset", "1700000090")
	fmt.Println(hints.RateLimit(resp))

	resp.Header.Set("X-RateLimit-Remaining", "41")
	resp.StatusCode = http.StatusBadGateway // failed for another reason than the limit
	fmt.Println(hints.RateLimit(resp))
	// Output:
	// 1m30s
	// 0s
}

func ExampleRetryAfter() {
	now := time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"120", "1.5", "Sun, 22 Nov 2026 12:00:30 GMT", "soon"} {
		fmt.Println(hints.RetryAfter(http.Header{"Retry-After": {value}}, now))
	}
	// Output:
	// 2m0s
	// 1.5s
	// 30s
	// 0s
}
