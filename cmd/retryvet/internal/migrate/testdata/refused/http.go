package refused

import (
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

type api struct{ client *retryablehttp.Client }

func (a *api) call(req *retryablehttp.Request) {
	_, _ = a.client.Do(req)                 // want `types of go-retryablehttp, which code elsewhere names`
	_, _ = retryablehttp.Get("http://test") // want `types of go-retryablehttp, which code elsewhere names`
	_ = a.client.StandardClient()           // want `its Client is not made here`
}

func httpClients(slow bool) {
	c := retryablehttp.NewClient()
	if slow {
		c.RetryMax = 3
	}
	_ = c.StandardClient() // want `the use of c is not understood`

	d := retryablehttp.NewClient()
	d.CheckRetry = retryablehttp.ErrorPropagatedRetryPolicy
	_ = d.StandardClient() // want `the CheckRetry is a custom function`

	e := retryablehttp.NewClient()
	e.RequestLogHook = nil
	_ = e.StandardClient() // want `the field RequestLogHook has no counterpart`

	f := retryablehttp.NewClient()
	f.HTTPClient = http.DefaultClient
	_ = f.StandardClient() // want `the HTTPClient is not a variable that keeps its value`

	g := retryablehttp.NewClient()
	g.HTTPClient = &http.Client{Jar: nil}
	_ = g.StandardClient() // want `the field Jar of HTTPClient has no counterpart`

	h := retryablehttp.NewClient()
	h.RetryWaitMin = time.Minute
	_ = h.StandardClient() // want `the longest delay is below the first`

	logger := os.Stdout
	i := retryablehttp.NewClient()
	i.Logger = logger
	_ = i.StandardClient() // want `the Logger is a variable for this client only`

	_, _ = retryablehttp.NewClient().Get("http://test") // want `types of go-retryablehttp`
}
