// Package base makes the transports of package retryhttp and of package ssrf.
package base

import (
	"net"
	"net/http"
	"time"
)

const (
	// An HTTP/2 connection that dies without a word (a NAT that forgets it, a host that loses power) is closed after
	// these two: soon enough for a second attempt after the usual 10s. client-go takes 30s and 15s
	// (k8s.io/apimachinery/pkg/util/net: readIdleTimeoutSeconds, pingTimeoutSeconds).
	sendPingTimeout = 5 * time.Second
	pingTimeout     = 5 * time.Second

	// What Chrome accepts (net/http/http_stream_parser.cc); net/http accepts 10 MiB.
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

// Dialer returns what New dials with.
func Dialer() net.Dialer {
	return net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
}
