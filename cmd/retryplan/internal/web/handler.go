package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

//go:embed assets
var assets embed.FS

const (
	// maxBody is the longest state that is read. The page's own are below 1 kB, but for long lists of delays.
	maxBody = 64 << 10
	// simulationLimit is how long a simulation may take before it answers with what it has: as long as somebody who moves a
	// slider may be left without a picture.
	simulationLimit = 3 * time.Second
	// policy allows what the binary itself serves. Neither the page nor uPlot has inline script or style attributes.
	contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)

// handler answers the page's requests.
type handler struct {
	start start
	limit time.Duration // of a simulation
}

// newHandler returns the handler of a page that opens with p.
func newHandler(p retry.Policy) (http.Handler, error) {
	return newLimitedHandler(p, simulationLimit)
}

func newLimitedHandler(p retry.Policy, limit time.Duration) (http.Handler, error) {
	first, err := startWith(p)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, err
	}
	h := &handler{start: first, limit: limit}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/start", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, h.start) })
	mux.HandleFunc("POST /api/evaluate", h.evaluate)
	mux.HandleFunc("GET /api/evaluate", func(w http.ResponseWriter, _ *http.Request) { // else "GET /" would look for such a file
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "an evaluation is asked for by POST")
	})
	return guarded(http.NewCrossOriginProtection().Handler(mux)), nil
}

// guarded lets pass what was asked of this machine by name, and says what a browser may do with the answer.
//
// A page elsewhere can make its own name resolve to 127.0.0.1 and so be of one origin with us (DNS rebinding), but the Host
// header then still has that name.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) {
			refuse(w, http.StatusForbidden, "this page answers to localhost and loopback addresses only")
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// local reports whether a Host header names this machine.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]") // IPv6 at port 80
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// evaluate answers a state with what it does: 200 and an Answer, or 422 and the fields that are wrong.
func (h *handler) evaluate(w http.ResponseWriter, r *http.Request) {
	// A form or plain text could come from a page elsewhere without the browser asking first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the state is to be sent as application/json")
		return
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			refuse(w, http.StatusRequestEntityTooLarge, "the state is longer than 64 kB")
			return
		}
		refuse(w, http.StatusBadRequest, "the state could not be read")
		return
	}
	var s state
	if err := json.Unmarshal(body.Bytes(), &s); err != nil {
		refuse(w, http.StatusBadRequest, "the state is not a JSON object of texts")
		return
	}
	question, bad := s.question()
	if bad != nil {
		reply(w, http.StatusUnprocessableEntity, refusal{Errors: bad})
		return
	}
	answer, bad := question.answer(r.Context(), h.limit)
	switch {
	case r.Context().Err() != nil: // the page has moved on, and nobody reads this
	case bad != nil:
		reply(w, http.StatusUnprocessableEntity, refusal{Errors: bad})
	default:
		reply(w, http.StatusOK, answer)
	}
}

// refusal is the body of every answer that is not a success.
type refusal struct {
	Errors []fault `json:"errors"`
}

// fault is one thing that is wrong with a state.
type fault struct {
	Field string `json:"field,omitempty"` // the state's key; empty where it is not a field's
	Text  string `json:"text"`
}

func refuse(w http.ResponseWriter, status int, text string) {
	reply(w, status, refusal{Errors: []fault{{Text: text}}})
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // a number that JSON does not have: ours to mend, but no reason to leave the page waiting
		status, body = http.StatusInternalServerError, []byte(`{"errors":[{"text":"the answer could not be written"}]}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(body)
}
