package web

import (
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
)

//go:embed assets
var assets embed.FS

const (
	// maxBody is the size of the longest state. Those of the page take less than 1 kB, except for long lists of delays.
	maxBody = 64 << 10
	// evaluationLimit is the time after which an evaluation ends its count and shows the seeds that it has, and once more
	// its advice. A user who moves a slider should not wait longer.
	evaluationLimit = 3 * time.Second
	// contentPolicy allows the files that the binary itself serves. Neither the page nor its pictures have inline scripts or
	// styles.
	contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)

// newHandler returns the page and its answers, with their protection. limit is that of an evaluation.
func newHandler(limit time.Duration) http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /chart.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		io.WriteString(w, plots.Stylesheet)
	})
	mux.HandleFunc("GET /presets.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(page.PresetsJSON)
	})
	mux.HandleFunc("POST /api/evaluate", func(w http.ResponseWriter, r *http.Request) { evaluate(w, r, limit) })
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "a page of another origin asked this")
	}))
	return guarded(protection.Handler(mux))
}

// guarded refuses requests for other hosts, and restricts the use that a browser may make of the answer. A page elsewhere can
// make its own name resolve to 127.0.0.1 (DNS rebinding), but then the Host header has that name.
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
	name := strings.TrimSuffix((&url.URL{Host: host}).Hostname(), ".") // "localhost." is the same name
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// evaluate answers a state with 200 and lines of JSON, each of which is the answer as far as it is known by then, or with
// 422 and the fields that are wrong.
func evaluate(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	var s page.State
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&s); err != nil {
		refuse(w, http.StatusBadRequest, "the state is not a JSON object of texts, of 64 kB at most")
		return
	}
	query := r.URL.Query()
	width, _ := strconv.ParseFloat(query.Get("width"), 64)
	most, _ := strconv.ParseFloat(query.Get("most"), 64)
	told := false
	tell := func(line []byte) {
		if !told {
			w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
			told = true
		}
		w.Write(line)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	answer, ok := page.Ask(r.Context(), page.Question{
		State: s, Limit: limit, Size: page.Size{Width: width, Most: most}, Tell: tell,
	})
	switch {
	case r.Context().Err() != nil: // the page does not wait for this answer any more
	case ok || told: // faults are found before anything is sent, but for time that stands still
		tell(answer)
	default:
		reply(w, http.StatusUnprocessableEntity, answer)
	}
}

func refuse(w http.ResponseWriter, status int, text string) {
	reply(w, status, page.Refuse(page.Fault{Text: text}))
}

func reply(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(body)
}
