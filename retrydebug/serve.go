package retrydebug

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// IsLoopback reports whether a request comes from a program of this machine for itself. It must come from a loopback
// address, be for the host localhost or a loopback address, and have no header by which a proxy marks a request of
// another client. A proxy on this machine that sets no such header and changes the Host cannot be recognized.
func IsLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for name := range r.Header {
		switch name = http.CanonicalHeaderKey(name); {
		case strings.HasPrefix(name, "X-Forwarded"), strings.HasPrefix(name, "X-Envoy-"),
			name == "Forwarded", name == "Via", name == "X-Real-Ip", name == "X-Client-Ip", name == "True-Client-Ip", name == "Cf-Connecting-Ip":
			return false
		}
	}
	host := r.Host // a foreign page can make its own name resolve to this machine (DNS rebinding)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	to, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && to.Unmap().IsLoopback()
}

// ServeHTTP answers GET and HEAD with the page. It is HTML for a browser, JSON if the Accept header asks for it, and
// otherwise a text for a terminal. The query format=html, format=json or format=text comes first. The HTML is loaded
// again after 5 s. With refresh=60 it is loaded after a minute, and with refresh=0 never.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	if !p.options.Allow(r) {
		http.Error(w, "this page is not for you: see Options.Allow of package retrydebug", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "this page can only be read", http.StatusMethodNotAllowed)
		return
	}
	header.Set("Vary", "Accept")
	var b bytes.Buffer
	var kind string
	var err error
	query := r.URL.Query()
	switch format(query.Get("format"), r.Header.Get("Accept")) {
	case "html":
		kind = "text/html; charset=utf-8"
		seconds, bad := strconv.Atoi(query.Get("refresh"))
		if bad != nil || seconds < 0 {
			seconds = 5
		}
		if seconds > 0 {
			header.Set("Refresh", strconv.Itoa(seconds))
		}
		err = writeHTML(&b, p.Snapshot(), seconds > 0)
	case "json":
		kind = "application/json"
		err = json.NewEncoder(&b).Encode(p.Snapshot())
	case "text":
		kind = "text/plain; charset=utf-8"
		err = writeText(&b, p.Snapshot())
	default:
		http.Error(w, "format is none of html, json and text", http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", kind)
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = w.Write(b.Bytes())
}

// format returns the form that a request asks for.
func format(query, accept string) string {
	switch {
	case query != "":
		return query
	case strings.Contains(accept, "text/html"):
		return "html"
	case strings.Contains(accept, "json"):
		return "json"
	default:
		return "text"
	}
}
