package retrydebug_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// browser is a tab of a headless Chromium, which is driven over a pipe by the Chrome DevTools Protocol: messages are JSON
// with a zero byte behind each. A driver would be the only dependency of this module.
type browser struct {
	t        *testing.T
	to       io.Writer
	from     *bufio.Reader
	session  string
	sent     int
	problems []string // what the console and the network say
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not short")
	}
	var binary string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("no chromium, chromium-browser or google-chrome in the PATH")
	}
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	answers, theirAnswers, err := os.Pipe()
	require.NoError(t, err)
	command := exec.Command(binary, "--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
		"--no-sandbox", // containers run as root, and the page is ours
		"--user-data-dir="+t.TempDir())
	command.ExtraFiles = []*os.File{theirs, theirAnswers} // 3 and 4
	require.NoError(t, command.Start())
	require.NoError(t, errors.Join(theirs.Close(), theirAnswers.Close()))
	b := &browser{t: t, to: ours, from: bufio.NewReader(answers)}
	t.Cleanup(func() {
		b.call("Browser.close", nil, nil)
		_ = command.Wait()
		_ = errors.Join(ours.Close(), answers.Close())
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call makes a call and decodes its result into to, if that is not nil.
func (b *browser) call(method string, params, to any) {
	b.t.Helper()
	b.sent++
	message := map[string]any{"id": b.sent, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		m := b.read()
		if m.ID != b.sent {
			continue
		}
		require.Empty(b.t, m.Error.Message, method)
		if to != nil {
			require.NoError(b.t, json.Unmarshal(m.Result, to))
		}
		return
	}
}

type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  struct{ Message string }
}

func (b *browser) read() (m message) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	require.NoError(b.t, err)
	require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &m))
	switch m.Method {
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed":
		b.problems = append(b.problems, string(m.Params))
	}
	return m
}

func (b *browser) visit(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	for b.read().Method != "Page.loadEventFired" {
	}
}

func (b *browser) eval(expression string, to any) {
	b.t.Helper()
	result := struct{ Result struct{ Value any } }{}
	result.Result.Value = to
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &result)
}

// leastContrast is the least ratio of the luminances of a text and what is behind it, by the Web Content Accessibility
// Guidelines 2.2, 1.4.3, with the text that has it.
const leastContrast = `(() => {
	const rgb = text => text.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = e => { const c = rgb(getComputedStyle(e).backgroundColor); return c.length < 4 || c[3] > 0 ? c : behind(e.parentElement) };
	let least = {ratio: 21, text: ""};
	for (const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walk.nextNode();) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim()) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < least.ratio) least = {ratio, text: e.textContent};
	}
	return least;
})()`

// TestThePageInABrowser: on a desktop and a phone, light and dark. With RETRYDEBUG_SCREENSHOTS it writes pictures into
// that folder.
func TestThePageInABrowser(t *testing.T) {
	var recorded *httptest.ResponseRecorder
	synctest.Test(t, func(t *testing.T) { recorded = get(shop(t), "?refresh=0", "text/html") })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range recorded.Header() {
			w.Header()[name] = values
		}
		_, _ = w.Write(recorded.Body.Bytes())
	}))
	defer server.Close()
	b := openBrowser(t)
	for _, row := range []struct {
		name, theme   string
		width, height int
		back          string
	}{
		{"desktop", "light", 1180, 1500, "rgb(246, 247, 249)"},
		{"desktop-dark", "dark", 1180, 1500, "rgb(14, 17, 22)"},
		{"phone", "light", 390, 844, "rgb(246, 247, 249)"},
		{"phone-dark", "dark", 390, 844, "rgb(14, 17, 22)"},
		{"watch", "light", 320, 400, "rgb(246, 247, 249)"},
	} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": row.width, "height": row.height, "deviceScaleFactor": 1, "mobile": row.width < 500}, nil)
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": row.theme}}}, nil)
		b.visit(server.URL)
		var wide, articles, apart int
		var back, title string
		var least struct {
			Ratio float64
			Text  string
		}
		b.eval("document.documentElement.scrollWidth", &wide)
		b.eval("document.querySelectorAll('article').length", &articles)
		b.eval("[...document.querySelectorAll('.state')].filter(e => e.offsetTop - e.parentElement.offsetTop > 12).length", &apart)
		b.eval("getComputedStyle(document.body).backgroundColor", &back)
		b.eval("document.title", &title)
		b.eval(leastContrast, &least)
		require.LessOrEqual(t, wide, row.width, "%s scrolls sideways", row.name)
		require.Zero(t, apart, "%s: a state is not beside its name", row.name)
		require.Equal(t, 120, articles, row.name)
		require.Equal(t, row.back, back, row.name)
		require.Equal(t, "retries – shop", title)
		require.GreaterOrEqual(t, least.Ratio, 4.5, "%s: %q is hard to read", row.name, least.Text)
		if dir := os.Getenv("RETRYDEBUG_SCREENSHOTS"); dir != "" {
			var picture struct{ Data string }
			b.call("Page.captureScreenshot", nil, &picture)
			data, err := base64.StdEncoding.DecodeString(picture.Data)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, row.name+".png"), data, 0o644))
		}
	}
	require.Empty(t, b.problems, "the console is empty, and nothing was blocked or not found")
}
