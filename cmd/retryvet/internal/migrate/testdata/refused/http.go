package refused

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

func httpClient() *http.Client {
	c := retryablehttp.NewClient() // want `docs/migrating.md has the client`
	c.RetryMax = 3
	return c.StandardClient()
}
