package ssrf_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/retrygo/retry/retryhttp/ssrf"
)

// A webhook's URL comes from a user. This one leads to a server on the sender's own machine.
func ExampleGuard() {
	internal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	defer internal.Close()

	client := &http.Client{Transport: ssrf.Guard{}.Transport()}
	_, err := client.Post(internal.URL, "application/json", nil)
	fmt.Println("blocked:", errors.Is(err, ssrf.ErrBlocked))

	var blocked *ssrf.BlockedError
	if errors.As(err, &blocked) {
		fmt.Println("rule:", blocked.Rule)
	}

	// In a test of your own, allow the loopback addresses.
	guard := ssrf.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	transport := guard.Transport()
	defer transport.CloseIdleConnections()
	client = &http.Client{Transport: transport}
	resp, err := client.Post(internal.URL, "application/json", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// blocked: true
	// rule: loopback
	// 204 No Content
}

// A literal address in a URL can be rejected when the user enters it.
func ExampleGuard_Check() {
	var guard ssrf.Guard
	fmt.Println(guard.Check(netip.MustParseAddr("8.8.8.8")))
	fmt.Println(guard.Check(netip.MustParseAddr("169.254.169.254")))
	fmt.Println(guard.Check(netip.MustParseAddr("::ffff:10.0.0.1")))
	// Output:
	// <nil>
	// ssrf: address is blocked: link-local "169.254.169.254"
	// ssrf: address is blocked: private "::ffff:10.0.0.1"
}
