package cli

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// locked serves a page under a path of its own, which ends in a slash, to requests with the token's cookie. A browser
// gets the cookie when it comes with the token in the address, and is led to the same address without it, so that the
// token is in no address that a user shares, and in no Referer.
//
// A browser sends the cookies of a host to the servers on all its ports. The cookie is for that path alone, which another
// server on this machine does not know. SameSite is Lax: Strict would stop a link in a chat from working.
func locked(token string, page http.Handler) (path string, h http.Handler) {
	sum := sha256.Sum256([]byte("retryjobs " + token))
	path, value := "/"+hex.EncodeToString(sum[:8])+"/", hex.EncodeToString(sum[8:])
	page = http.StripPrefix(path[:len(path)-1], page)
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		within := strings.HasPrefix(r.URL.Path, path)
		if query := r.URL.Query(); within && same(query.Get("token"), token) {
			query.Del("token")
			http.SetCookie(w, &http.Cookie{Name: "retryjobs", Value: value, Path: path, HttpOnly: true, SameSite: http.SameSiteLaxMode})
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, (&url.URL{Path: path, RawQuery: query.Encode()}).String(), http.StatusSeeOther)
			return
		}
		if cookie, err := r.Cookie("retryjobs"); within && err == nil && same(cookie.Value, value) {
			page.ServeHTTP(w, r)
			return
		}
		http.Error(w, "Open the address that retryjobs serve has printed: it has a token, which this request lacks.", http.StatusUnauthorized)
	})
	return path, h
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
