package refused

import "github.com/hashicorp/go-retryablehttp"

func clients() {
	_, _ = retryablehttp.NewClient().StandardClient().Get("http://test") // want `retryhttp returns the last response`
	_, _ = retryablehttp.Get("http://test")                              // want `retryhttp returns the last response`
}
