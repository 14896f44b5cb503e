package web_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/retrygo/retry/cmd/retryplan/internal/web"
	"github.com/stretchr/testify/require"
)

type step = chromedp.Action[chromedp.Void]

// page is a tab of a headless Chromium that shows a served page. Every wait is for a condition, under the test's deadline.
type page struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string // what the console was told, and exceptions
	requests []string // every address that was asked
}

// open serves a page and opens it, and skips the test where there is no Chromium. When the test ends nothing may have been
// asked of another machine, and nothing may stand in the console but what the test took from problems.
func open(t *testing.T, fragment string) *page {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not short")
	}
	binary := chromium(t)
	serving, stop := context.WithCancel(t.Context())
	address, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- web.Serve(serving, web.Options{Ready: func(url string) { address <- url }})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	p := &page{t: t}
	select {
	case p.url = <-address:
	case err := <-served:
		require.NoError(t, err)
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(binary), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // containers run as root, and the page is ours
	)
	allocator, endAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(endAllocator)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	p.ctx = tab
	require.NoError(t, chromedp.Listen(tab, p.listen))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.problems, "nothing is told to the console")
		for _, asked := range p.requests {
			require.True(t, strings.HasPrefix(asked, p.url) || strings.HasPrefix(asked, "blob:"+p.url), "a request left the page: %s", asked)
		}
	})
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.run(chromedp.Navigate(p.url + fragment))
	p.until(`Number(document.body.dataset.drawn) >= 1`)
	return p
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome in the PATH")
	return ""
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, fmt.Sprintf("exception: %+v", *e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("%s: %+v", e.Type, e.Args))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// refusals takes from the problems what a browser itself says of an answer 422.
func (p *page) refusals() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rest []string
	for _, problem := range p.problems {
		if strings.Contains(problem, "422") {
			n++
		} else {
			rest = append(rest, problem)
		}
	}
	p.problems = rest
	return n
}

func (p *page) run(actions ...step) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, actions...))
}

func call[P, R any](p *page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, command, params)
	require.NoError(p.t, err, command.Method)
}

// until waits for a condition in the page.
func (p *page) until(condition string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingTimeout(time.Minute)))
	if err != nil {
		p.save("failure")
	}
	require.NoError(p.t, err, "waiting for %s; console: %q", condition, p.problems)
}

func eval[T any](p *page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// next runs a change and waits until a later picture than the present one is drawn.
func (p *page) next(change ...step) {
	p.t.Helper()
	before := eval[int](p, `Number(document.body.dataset.drawn)`)
	p.run(change...)
	p.until(fmt.Sprintf(`Number(document.body.dataset.drawn) > %d && !document.body.hasAttribute("aria-busy")`, before))
}

// choose sets a field as a user does who types or chooses.
func choose(id, value string) step {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); })()`, id, value))
}

// prefers emulates a preference of the user.
func (p *page) prefers(name, value string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
}

// picture returns the pixels of a figure's canvas.
func (p *page) picture(figure string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector("#%s canvas").toDataURL()`, figure))
}

func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// save writes a screenshot of the whole page into the directory that RETRYPLAN_SCREENSHOTS names, if it does.
func (p *page) save(name string) {
	dir := os.Getenv("RETRYPLAN_SCREENSHOTS")
	if dir == "" {
		return
	}
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644))
}

func TestPageDraws(t *testing.T) {
	p := open(t, "")
	for _, figure := range []string{"schedule", "total", "load", "queue"} {
		require.Positive(t, eval[int](p, fmt.Sprintf(`(() => {
			const c = document.querySelector("#%s canvas");
			return new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size - 1;
		})()`, figure)), "the chart %s has more than one colour", figure)
		require.NotEmpty(t, eval[string](p, fmt.Sprintf(`document.querySelector("#%s [role=img]").getAttribute("aria-label")`, figure)))
		require.Positive(t, eval[int](p, fmt.Sprintf(`document.querySelectorAll("#%s tbody tr").length`, figure)), "the table of %s", figure)
	}
	require.Contains(t, p.text("#line"), "4 attempts, exponential 100ms ×2, cap 300ms, full jitter")
	require.NotContains(t, p.text("#verdict"), "Computing")
	p.save("light")
}

func TestSliderMovesThePicture(t *testing.T) {
	p := open(t, "")
	before := map[string]string{}
	for _, figure := range []string{"schedule", "total"} {
		before[figure] = p.picture(figure)
	}
	facts := p.text("#plan-facts")

	p.next(chromedp.Focus(chromedp.CSS("#slider-base")), chromedp.KeyEvent(kb.ArrowRight))
	require.Equal(t, "120ms", eval[string](p, `document.getElementById("base").value`), "the text field follows")
	require.Equal(t, "120ms", eval[string](p, `document.getElementById("slider-base").getAttribute("aria-valuetext")`))
	require.Contains(t, p.text("#line"), "exponential 120ms")
	require.Contains(t, eval[string](p, `location.hash`), "base=120ms", "a link holds what is set")

	p.next(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("slider-max_attempts"); s.value = 7; s.dispatchEvent(new Event("input", {bubbles: true})); })()`))
	require.Contains(t, p.text("#line"), "8 attempts")
	require.NotEqual(t, facts, p.text("#plan-facts"))
	for figure, pixels := range before {
		require.NotEqual(t, pixels, p.picture(figure), "the picture of %s", figure)
	}

	load, seen := p.picture("load"), p.text("#simulation-facts")
	p.next(choose("rate", "90"))
	require.NotEqual(t, load, p.picture("load"))
	require.NotEqual(t, seen, p.text("#simulation-facts"))
}

func TestTypedTextMovesTheSlider(t *testing.T) {
	p := open(t, "")
	low := eval[int](p, `document.getElementById("slider-cap").valueAsNumber`)
	p.next(choose("cap", "1m30s"))
	require.Greater(t, eval[int](p, `document.getElementById("slider-cap").valueAsNumber`), low)
	p.next(choose("cap", ""))
	require.Zero(t, eval[int](p, `document.getElementById("slider-cap").valueAsNumber`), "no cap given is the slider's first stop")
}

func TestFaultStandsAtItsField(t *testing.T) {
	p := open(t, "")
	picture, line := p.picture("schedule"), p.text("#line")
	p.run(choose("base", "250"))
	p.until(`document.body.classList.contains("stale")`)
	require.Contains(t, p.text("#error-base"), "has no unit")
	require.Equal(t, "true", eval[string](p, `document.getElementById("base").getAttribute("aria-invalid")`))
	require.Contains(t, p.text("#problem"), "Not redrawn")
	require.Equal(t, picture, p.picture("schedule"), "the last good picture stays")
	require.Equal(t, line, p.text("#line"))
	require.Positive(t, p.refusals(), "the browser itself tells of each refusal")
	p.save("error")

	p.next(choose("base", "250ms"))
	require.False(t, eval[bool](p, `document.body.classList.contains("stale")`))
	require.True(t, eval[bool](p, `document.getElementById("error-base").hidden && document.getElementById("problem").hidden`))
	require.False(t, eval[bool](p, `document.getElementById("base").hasAttribute("aria-invalid")`))

	p.run(choose("base", "5s"))
	p.until(`document.body.classList.contains("stale")`)
	require.Contains(t, p.text("#error-cap"), "is below base 5s", "what is wrong between fields stands at one of them")
	p.refusals()
}

func TestOldAnswerNeverOverwritesNewer(t *testing.T) {
	p := open(t, "")
	// The first question is held back until the second is answered. Aborting is taken away from it, so that its answer does
	// come, late.
	p.run(chromedp.Evaluate[chromedp.Void](`(() => {
		const ask = window.fetch;
		let release, asked = 0;
		window.held = new Promise((done) => { release = done; });
		window.fetch = async (url, options) => {
			if (++asked > 1) { const answer = await ask(url, options); setTimeout(release, 0); return answer; }
			window.first = true;
			const answer = await ask(url, { ...options, signal: undefined });
			await window.held;
			window.late = true;
			return answer;
		};
	})()`))
	p.run(choose("max_attempts", "5"))
	p.until(`window.first === true`)
	p.next(choose("max_attempts", "6"))
	p.until(`window.late === true`)
	require.Contains(t, p.text("#line"), "6 attempts")
	require.Equal(t, 2, eval[int](p, `Number(document.body.dataset.drawn)`), "the late answer was not drawn")
}

func TestPolicyIsCopied(t *testing.T) {
	p := open(t, "")
	for _, name := range []string{"clipboard-write", "clipboard-read"} {
		_, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
			Origin: strings.TrimSuffix(p.url, "/"),
		})
		require.NoError(t, err)
	}
	for id, part := range map[string]string{"go": "retry.Policy{", "json": `"max_attempts": 4`} {
		p.run(chromedp.Evaluate[chromedp.Void](`document.getElementById("copied").textContent = ""`), chromedp.Click(chromedp.CSS(fmt.Sprintf("[data-copy=%s]", id))))
		p.until(`document.getElementById("copied").textContent === "Copied."`)
		copied := eval[string](p, `navigator.clipboard.readText()`)
		require.Contains(t, copied, part)
		require.Equal(t, eval[string](p, fmt.Sprintf(`document.getElementById(%q).value`, id)), copied)
	}
}

func TestCopyWithoutClipboardSelects(t *testing.T) {
	p := open(t, "")
	p.run(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = () => Promise.reject(new Error("no"))`), chromedp.Click(chromedp.CSS("[data-copy=go]")))
	p.until(`document.getElementById("copied").textContent.startsWith("Selected")`)
	require.Equal(t, "go", eval[string](p, `document.activeElement.id`))
	require.True(t, eval[bool](p, `(() => { const e = document.activeElement; return e.selectionEnd - e.selectionStart === e.value.length; })()`))
}

func TestLinkOpensTheSameState(t *testing.T) {
	p := open(t, "#"+url.Values{"mode": {"list"}, "delays": {"1s, 2s"}, "max_attempts": {"4"}, "jitter": {"none"}, "cap": {""}}.Encode())
	require.Contains(t, p.text("#line"), "4 attempts, list")
	require.False(t, eval[bool](p, `document.getElementById("base").closest(".row").checkVisibility()`), "a list has no base")
	require.Equal(t, "1s, 2s", eval[string](p, `document.getElementById("delays").value`))
}

func TestPresetsAndStorm(t *testing.T) {
	p := open(t, "")
	press := func(label string) step {
		return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll("#presets button")].find((b) => b.textContent === %q).click()`, label))
	}
	p.next(press("Cautious"))
	require.Contains(t, p.text("#line"), "6 attempts, list: 1m 10m 1h 4h 12h (17h11m in all)")
	p.next(press("See a storm"))
	require.Contains(t, p.text("#verdict"), "Metastable")
	require.Equal(t, "metastable", eval[string](p, `document.getElementById("verdict").dataset.kind`))
	require.Contains(t, p.text("#simulation-facts"), "not within the simulation")
	p.save("storm")
	p.next(choose("budget", "shared"))
	require.NotContains(t, p.text("#simulation-facts"), "not within the simulation", "a budget that successes fund brings the fleet back")
	require.True(t, eval[bool](p, `document.getElementById("no-budget").checkVisibility()`))
}

func TestDarkModeChangesTheCharts(t *testing.T) {
	p := open(t, "")
	light, back := p.picture("load"), eval[string](p, `getComputedStyle(document.body).backgroundColor`)
	p.prefers("prefers-color-scheme", "dark")
	p.until(fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q && document.querySelector("#load canvas") && document.querySelector("#load canvas").toDataURL() !== %q`, back, light))
	p.save("dark")
}

func TestReducedMotionHasNoTransitions(t *testing.T) {
	p := open(t, "")
	const moving = `[...document.querySelectorAll("*")].filter((e) => getComputedStyle(e).transitionDuration !== "0s" || getComputedStyle(e).animationName !== "none").length`
	require.Positive(t, eval[int](p, moving))
	p.prefers("prefers-reduced-motion", "reduce")
	require.Zero(t, eval[int](p, moving))
}

func TestPhoneHasNoHorizontalScroll(t *testing.T) {
	p := open(t, "")
	p.run(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
	fits := `document.documentElement.scrollWidth <= 360 && [...document.querySelectorAll("figure, .row, textarea, dl, button")].every((e) => e.getBoundingClientRect().right <= 360)`
	p.until(fits + ` && document.querySelector("#load .uplot").getBoundingClientRect().width <= 360`)
	p.save("phone")
	// Long words of a policy do not widen the page, nor do its tables.
	p.next(choose("mode", "list"), choose("delays", "1h2m3.456789s, 2h2m3.456789s, 3h2m3.456789s, 4h2m3.456789s"), choose("cap", ""))
	p.run(chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll("details")) d.open = true`))
	p.until(fits)
}

func TestEverythingIsReachedByKeyboard(t *testing.T) {
	p := open(t, "")
	// Every control has a name, is a native one, and shows where the focus is.
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("input, select, textarea, button")].filter((e) => e.checkVisibility()
		&& !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML)`))
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("[tabindex]")].filter((e) => e.tabIndex > 0).map((e) => e.outerHTML)`))
	var unmarked []string
	p.run(chromedp.Focus(chromedp.CSS("#presets button")))
	for range 5 {
		p.run(chromedp.KeyEvent(kb.Tab))
		if width := eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`); width == "none" {
			unmarked = append(unmarked, eval[string](p, `document.activeElement.outerHTML`))
		}
	}
	require.Empty(t, unmarked, "the focus is seen")
	require.Equal(t, "polite", eval[string](p, `document.getElementById("verdict").getAttribute("aria-live")`))
}
