package retryhttp

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// mayRenew reports whether resp, the answer to a request for the rest, may mean that a signature in the URL has
// expired. That is so if a client was redirected to the URL, and the first URL was not asked again since the last byte
// came.
func (b *resumable) mayRenew(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return !b.renewed && len(redirectChain(b.asked)) > 1
	default:
		return false
	}
}

// redirectChain returns the requests that a client has sent to come to req, the first one first and req last, or req
// alone if one of them was not a GET.
func redirectChain(req *http.Request) []*http.Request {
	chain := []*http.Request{req}
	for first := req; first.Response != nil && first.Response.Request != nil && len(chain) <= longestChain; {
		first = first.Response.Request
		if !isGet(first) || first.URL == nil {
			return chain[:1]
		}
		chain = append(chain, first)
	}
	slices.Reverse(chain)
	return chain
}

// renew asks the first URL for the rest, and follows redirects as the client has done, to the same hosts and each with
// the header that it got then. It returns the exchange that is not redirected any further, whose URL is asked from now
// on, or nil if it is redirected elsewhere. attempt is the context of the attempt, and rest is the context of the whole
// rest of the body.
func (b *resumable) renew(attempt, rest context.Context) (*exchange, error) {
	chain := redirectChain(b.asked)
	target := chain[0].URL
	for i, hop := range chain {
		asked := hop.WithContext(rest)
		asked.URL = target
		x, err := b.exchange(attempt, b.rest(rest, asked))
		if err != nil {
			return nil, err
		}
		next := location(asked.URL, x.resp)
		if next == nil || i == len(chain)-1 {
			b.renewed = true
			b.asked = asked
			return x, nil
		}
		x.drop()
		if !isSameOrigin(next, chain[i+1].URL) {
			b.renewed = true
			return nil, nil
		}
		target = next
	}
	return nil, nil // not reached, because the last of a chain returns
}

// exchange makes an exchange for req.
func (b *resumable) exchange(ctx context.Context, req *http.Request) (*exchange, error) {
	r := b.newRun(req)
	defer r.finish()
	if err := r.attempt(ctx); err != nil {
		return nil, err
	}
	return r.handOver(), nil
}

// location returns where resp redirects a GET of from to, nil if it does not.
func location(from *url.URL, resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil
	}
	target, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil
	}
	return target
}

// isSameOrigin reports whether a and b have the same scheme, host and port.
func isSameOrigin(a, b *url.URL) bool { return sameHost(a, b) && strings.EqualFold(a.Scheme, b.Scheme) }
