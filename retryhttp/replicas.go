package retryhttp

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryshell"
)

// Replicas is a Base of a Transport that sends the attempts at a request to one host of a service after the other. Each
// attempt goes to another host than the one before, and a hedge to another host than the request beside it. The rest of
// a body is first asked for where its beginning came from (see Transport.Resume). After the last host of the list comes
// the first.
//
// The hosts are one service. They must all serve the same requests, and any of them may get a request with its
// credentials. A request for a host that is not in the list, as after a redirect, goes there and nowhere else.
type Replicas struct {
	// Base makes the attempts. Nil means http.DefaultTransport.
	Base http.RoundTripper

	// Hosts are the hosts of the service, with their ports as in a URL, such as "eu.example.com" or "10.0.0.7:8443". A
	// request for any of them is sent to each with its own TLS name and Host header. A Request.Host that differs from
	// the host of the URL stays. An empty list is refused.
	Hosts []string

	// First is the index of the host of a first attempt. It wraps around, so it can be any number. To spread the load
	// of a fleet, give each process another one, such as a hash of its name. Zero is the first host of the list.
	First int
}

// Validate returns nil or retry.FieldErrors. It refuses an empty list, and a host that cannot be in a URL. RoundTrip
// returns the same error.
func (r *Replicas) Validate() error {
	var bad retry.FieldErrors
	if len(r.Hosts) == 0 {
		bad.Refuse("retryhttp.Replicas.Hosts", "[]", "is empty")
	}
	for i, host := range r.Hosts {
		parsed, err := url.Parse("http://" + host)
		if err != nil || parsed.Host != host || refusedHost(&url.URL{Host: host}) != nil {
			bad.Refuse("retryhttp.Replicas.Hosts["+strconv.Itoa(i)+"]", strconv.Quote(host), "is not a host")
		}
	}
	return bad.Err()
}

// RoundTrip sends req to the host that its attempt is for. The Request of the response has the URL of that host.
func (r *Replicas) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.Validate(); err != nil {
		closeRequest(req)
		return nil, err
	}
	if req.URL == nil || r.index(req.URL.Host) < 0 {
		return r.base().RoundTrip(req)
	}
	out := req.WithContext(req.Context())
	target := *req.URL
	out.URL = &target
	out.URL.Host = r.Hosts[r.turn(req.Context())]
	if req.Host == req.URL.Host {
		out.Host = out.URL.Host
	}
	resp, err := r.base().RoundTrip(out)
	if resp != nil {
		resp.Request = out
	}
	return resp, err
}

func closeRequest(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// turn returns the index of the host for a request with ctx.
func (r *Replicas) turn(ctx context.Context) int {
	first := r.First % len(r.Hosts)
	number := max(retry.AttemptNumber(ctx), retryshell.OuterAttemptNumber(ctx)) - 1
	if from, ok := ctx.Value(placeKey{}).(place); ok {
		if i := r.index(from.host); i >= 0 {
			first = i
			number = retry.AttemptNumber(ctx) - from.attempt
		}
	}
	hedge := max(retryhedge.CallNumber(ctx)-1, 0)
	n := len(r.Hosts)
	return ((first+number%n+hedge)%n + n) % n
}

// index returns where host is in the list, -1 if it is not.
func (r *Replicas) index(host string) int {
	return slices.IndexFunc(r.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// CloseIdleConnections calls the method of Base, if it has one.
func (r *Replicas) CloseIdleConnections() { closeIdle(r.base()) }

func (r *Replicas) base() http.RoundTripper { return cmp.Or(r.Base, http.DefaultTransport) }

// place is the host that the attempt with the number is to go to.
type place struct {
	host    string
	attempt int
}

type placeKey struct{}
