package jobsui

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

//go:embed assets
var assets embed.FS

// Options are the settings of New. Admin and Access must be set.
type Options struct {
	// Admin is the engine, or the store of a database, whose jobs are shown. It must be set.
	Admin retryjob.Admin
	// Name is shown at the top of each page, such as "production". Empty means no name.
	Name string
	// Hosts are the host names, without a port, that the handler accepts in a request's Host header, beside localhost and
	// loopback addresses. It refuses others, since a foreign page can make its own name resolve to this server (DNS
	// rebinding). Nil means no others.
	Hosts []string
	// Access returns the rights of a request, by the caller's own login. It is called once for each request, by several
	// goroutines at once. It must be set, or every client that reaches the handler could purge jobs.
	Access func(*http.Request) Access
	// Redact returns the part of a payload that the page shows and searches. Its argument is the payload or, if that is longer,
	// its first 64 KiB. Redact must not change it. Nil means RedactSecrets.
	Redact func(json.RawMessage) json.RawMessage
	// ErrorText returns the text that the page shows for an error of Admin, such as one without the database's
	// password. Nil means the error's own text.
	ErrorText func(error) string
}

// Access is the rights of a request.
type Access uint8

// The kinds of access. The zero Access is NoAccess.
const (
	NoAccess  Access = iota // nothing
	ReadOnly                // look at jobs
	ReadWrite               // and replay, cancel and purge them
)

// Validate returns nil or retry.FieldErrors if Admin or Access is nil, or an element of Hosts is empty or has a port.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.Admin == nil {
		bad.Refuse("jobsui.Options.Admin", "<nil>", "must be set")
	}
	if o.Access == nil {
		bad.Refuse("jobsui.Options.Access", "<nil>", "must be set")
	}
	for i, host := range o.Hosts {
		if name := hostname(host); name == "" || name != strings.ToLower(host) {
			bad.Refuse("jobsui.Options.Hosts["+strconv.Itoa(i)+"]", strconv.Quote(host), "is not a host name without a port")
		}
	}
	return bad.Err()
}

// New returns the page as a handler, or the error of o.Validate. Its addresses are relative, so mount it under any path
// that ends in a slash, with http.StripPrefix. It is safe for concurrent use.
//
// The handler refuses requests that Options.Access does not allow, requests for a host that Options.Hosts does not allow,
// and requests to change something that come from another origin (http.CrossOriginProtection). A proxy in front must
// pass the Host header on.
func New(o Options) (http.Handler, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	h := &handler{Options: o}
	if h.ErrorText == nil {
		h.ErrorText = error.Error
	}
	if h.Redact == nil {
		h.Redact = RedactSecrets
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /job", h.job)
	mux.HandleFunc("POST /confirm", h.confirm)
	mux.HandleFunc("POST /act", h.act)
	mux.HandleFunc("POST /schedule", h.schedule)
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "jobs.js": "text/javascript; charset=utf-8", "favicon.svg": "image/svg+xml",
	} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			data, _ := assets.ReadFile("assets/" + name) // it is embedded
			w.Header().Set("Content-Type", kind)
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
		})
	}
	return h.guard(http.NewCrossOriginProtection().Handler(mux)), nil
}

type handler struct {
	Options
	counting sync.Mutex
	counted  overview
}

// requestTime is how long a request may take. Changes made until then remain.
const requestTime = 10 * time.Second

// contentPolicy allows only the handler's own files, without inline scripts or styles.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard refuses foreign hosts and requests without access, and limits the use that a browser makes of the answers.
func (h *handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Referrer-Policy", "same-origin") // "no-referrer" would make the Origin of a form "null"
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cache-Control", "no-store")
		if !h.answers(r.Host) {
			http.Error(w, "this page does not answer to this host name", http.StatusForbidden)
			return
		}
		access := h.Access(r)
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if access != ReadWrite && (access != ReadOnly || !reads) {
			http.Error(w, "you may not do this", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), accessKey{}, access), requestTime)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// accessKey is the key of a request's Access in its context.
type accessKey struct{}

// answers reports whether the page answers to a Host header.
func (h *handler) answers(host string) bool {
	name := hostname(host)
	if ip, err := netip.ParseAddr(name); name == "localhost" || err == nil && ip.IsLoopback() {
		return true
	}
	for _, allowed := range h.Hosts {
		if hostname(allowed) == name {
			return true
		}
	}
	return false
}

// hostname returns a Host header in lower case, without port, brackets and final dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// text returns the text of an error for the page.
func (h *handler) text(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return strings.TrimPrefix(h.ErrorText(err), "retryjob: ")
}
