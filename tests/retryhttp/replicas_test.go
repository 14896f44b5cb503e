package retryhttp_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
)

func TestReplicasOverTLSHaveTheirOwnNames(t *testing.T) {
	names := make(chan string, 2)
	serve := func() *httptest.Server {
		return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			names <- r.Host + " " + r.TLS.ServerName
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
	}
	one, two := serve(), serve()
	defer one.Close()
	defer two.Close()
	base := one.Client().Transport.(*http.Transport)
	base.TLSClientConfig.InsecureSkipVerify = true
	host := func(s *httptest.Server) string {
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		return "localhost:" + u.Port()
	}
	twice := atOnce
	twice.MaxAttempts = 2
	tr := &retryhttp.Transport{Policy: twice, Base: &retryhttp.Replicas{Base: base, Hosts: []string{host(one), host(two)}}}
	_, _, err := run(t, tr, socketTo(t.Context(), "GET", "https://"+host(one), nil))
	require.NoError(t, err)
	require.Equal(t, []string{host(one) + " localhost", host(two) + " localhost"}, []string{<-names, <-names})
}
