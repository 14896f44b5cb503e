package cli_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
)

// served runs serve while do uses the page at the printed address.
func served(t *testing.T, f *fake, do func(address string), args ...string) ran {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, line := io.Pipe()
	var stderr strings.Builder
	exit := make(chan int, 1)
	go func() {
		exit <- cli.Run(ctx, cli.Options{
			Open: func(context.Context, string) (cli.Store, error) { return f, nil }, Now: func() time.Time { return now },
			Getenv: func(string) string { return "postgres://me:hush@db.example/jobs" },
		}, append([]string{"serve"}, args...), line, &stderr)
		line.Close()
	}()
	buffer := make([]byte, 1000)
	n, err := out.Read(buffer)
	require.NoError(t, err)
	do(strings.TrimSpace(string(buffer[:n])))
	cancel()
	return ran{Exit: <-exit, Err: stderr.String()}
}

// fetch gets an address as a browser does that has the cookies.
func fetch(t *testing.T, cookies http.CookieJar, address, host string) (int, string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.Host = host
	w, err := (&http.Client{Jar: cookies}).Do(r)
	require.NoError(t, err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w.StatusCode, string(body)
}

func jar(t *testing.T) http.CookieJar {
	j, err := cookiejar.New(nil)
	require.NoError(t, err)
	return j
}

func TestServeServesThePage(t *testing.T) {
	f := newFake(jobs()...)
	got := served(t, f, func(address string) {
		require.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*/[0-9a-f]{16}/\?token=[A-Z2-7]{26}$`, address)
		cookies := jar(t)
		status, body := fetch(t, cookies, address, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "dead-1")
		require.Contains(t, body, "postgres://me@db.example/jobs")
		require.NotContains(t, body, address[strings.Index(address, "=")+1:], "no page has the token")
		status, _ = fetch(t, cookies, withoutToken(address), "evil.example")
		require.Equal(t, http.StatusUnauthorized, status, "a browser has no cookie for another name (DNS rebinding)")
	})
	require.Equal(t, ran{}, got, "an interrupt is how it ends")
	require.Equal(t, 1, f.closed)
}

var errWithPassword = errors.New("no route to postgres://me:hush@db.example/jobs")

func TestThePageShowsNoPassword(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errWithPassword
	served(t, f, func(address string) {
		_, body := fetch(t, jar(t), address, "")
		require.Contains(t, body, "The jobs could not be listed: no route to postgres://me:xxxxx@db.example/jobs.")
		require.NotContains(t, body, "hush")
	})
}

func withoutToken(address string) string { return address[:strings.Index(address, "?")] }

// TestThePageIsForThoseWhoHaveItsAddress: any process of this machine can reach the port, and a browser sends the cookies
// of a host to all its ports.
func TestThePageIsForThoseWhoHaveItsAddress(t *testing.T) {
	f := newFake(jobs()...)
	served(t, f, func(address string) {
		own, err := url.Parse(address)
		require.NoError(t, err)
		base := "http://" + own.Host
		for _, wrong := range []string{
			base + "/", base + "/style.css", base + "/?token=" + own.Query().Get("token"), withoutToken(address), withoutToken(address) + "job?id=dead-1",
			withoutToken(address) + "?token=", withoutToken(address) + "?token=" + strings.Repeat("A", 26), withoutToken(address) + "style.css",
		} {
			status, body := fetch(t, jar(t), wrong, "")
			require.Equal(t, http.StatusUnauthorized, status, wrong)
			require.NotContains(t, body, "dead")
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, withoutToken(address)+"act", strings.NewReader("do=purge&id=dead-1"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, http.StatusUnauthorized, w.StatusCode)
		require.NotNil(t, f.jobs["dead-1"])

		r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, address+"&status=dead_letter", nil)
		require.NoError(t, err)
		w, err = http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, http.StatusSeeOther, w.StatusCode)
		require.Equal(t, own.Path+"?status=dead_letter", w.Header.Get("Location"), "the token leaves the address")
		require.Equal(t, "no-referrer", w.Header.Get("Referrer-Policy"))
		cookie := w.Cookies()[0]
		require.True(t, cookie.HttpOnly)
		require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
		require.Equal(t, own.Path, cookie.Path, "a server on another port does not get it")
		require.NotContains(t, cookie.Value, own.Query().Get("token"))

		cookies := jar(t)
		fetch(t, cookies, address, "")
		for _, inside := range []string{"", "job?id=dead-1", "style.css"} {
			status, _ := fetch(t, cookies, withoutToken(address)+inside, "")
			require.Equal(t, http.StatusOK, status, inside)
		}
	})
}

func TestAPageThatIsReadOnlyChangesNothing(t *testing.T) {
	f := newFake(jobs()...)
	served(t, f, func(address string) {
		cookies := jar(t)
		_, body := fetch(t, cookies, address, "")
		require.Contains(t, body, "dead-1")
		require.NotContains(t, body, "purge")
		for _, path := range []string{"act", "act?all", "confirm", "confirm?all"} {
			w, err := (&http.Client{Jar: cookies}).PostForm(withoutToken(address)+path, url.Values{"do": {"purge"}, "id": {"dead-1"}})
			require.NoError(t, err)
			require.NoError(t, w.Body.Close())
			require.Equal(t, http.StatusForbidden, w.StatusCode)
		}
		require.NotNil(t, f.jobs["dead-1"])
	}, "--read-only")
}
