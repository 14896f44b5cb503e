// Package base makes the transports of package retryhttp and of package ssrf.
package base

import (
	"net"
	"net/http"
	"time"
)

const (
	// An HTTP/2 connection that dies without a word, because a NAT forgets it or a host loses power, is closed after the
	// sum of these two. That is soon enough for a second attempt after the usual 10s. client-go takes 30s and 15s (see
	// readIdleTimeoutSeconds and pingTimeoutSeconds in k8s.io/apimachinery/pkg/util/net).
	sendPingTimeout = 5 * time.Second
	pingTimeout     = 5 * time.Second

	// Chrome accepts as much (net/http/http_stream_parser.cc), net/http 10 MiB.
	maxResponseHeader = 256 << 10
)

// New is retryhttp.NewBase.
func New() *http.Transport {
	dialer := Dialer()
	// Written out rather than cloned: http.DefaultTransport may be anything, and a clone brings along the dial functions
	// and the registered protocols (file:) that would pass by a Guard.
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: sendPingTimeout, PingTimeout: pingTimeout},
		MaxIdleConns:           100,
		MaxResponseHeaderBytes: maxResponseHeader,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  1 * time.Second,
	}
}

// Dialer returns a dialer with the settings of New.
func Dialer() net.Dialer {
	return net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
}
