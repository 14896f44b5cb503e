package web_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
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

// page is a tab of a headless Chromium that shows a served page. Every wait is for a condition, under the test's
// deadline.
type page struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string // lines of the console, and exceptions
	requests []string // every address that was asked
}

// open serves a page and opens it. It skips the test if there is no Chromium.
func open(t *testing.T, fragment string) *page {
	t.Helper()
	chromium(t)
	serving, stop := context.WithCancel(t.Context())
	address, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- web.Serve(serving, "127.0.0.1:0", func(url string) { address <- url })
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	select {
	case url := <-address:
		return show(t, url, fragment)
	case err := <-served:
		require.FailNow(t, "not served", err)
		return nil
	}
}

// show opens a page in a browser. The test fails if the page has sent a request to another machine, or if the console has
// a message that the test did not take from problems.
func show(t *testing.T, url, fragment string) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // containers run as root, and the page is ours
	)
	allocator, endAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(endAllocator)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	p := &page{t: t, ctx: tab, url: url}
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
	if testing.Short() {
		t.Skip("a browser is not short")
	}
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

// refusals takes from the problems the browser's own lines about an answer 422.
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

// picture returns the SVG of a figure.
func (p *page) picture(figure string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector("#%s svg").outerHTML`, figure))
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
	for _, figure := range []string{"schedule", "load", "queue"} {
		require.Greater(t, eval[int](p, fmt.Sprintf(`new Set([...document.querySelectorAll("#%s svg path")].map((e) => getComputedStyle(e).color)).size`, figure)), 2,
			"the chart %s has its colors", figure)
		require.InDelta(t, eval[float64](p, fmt.Sprintf(`document.querySelector("#%s").getBoundingClientRect().width`, figure)),
			eval[float64](p, fmt.Sprintf(`document.querySelector("#%s svg").getBoundingClientRect().width`, figure)), 1, "as wide as its figure")
		require.NotEmpty(t, eval[string](p, fmt.Sprintf(`document.querySelector("#%s [role=img]").getAttribute("aria-label")`, figure)))
	}
	require.Contains(t, p.text("#line"), "4 attempts, exponential 100ms ×2, cap 300ms, full jitter")
	require.NotContains(t, p.text("#verdict"), "Computing")
	require.NotContains(t, p.text("main"), "undefined")
	p.save("light")
}

func TestSliderMovesThePicture(t *testing.T) {
	p := open(t, "")
	schedule := p.picture("schedule")
	facts := p.text("#plan-facts")

	p.next(chromedp.Focus(chromedp.CSS("#slider-base")), chromedp.KeyEvent(kb.ArrowRight))
	require.Equal(t, "120ms", eval[string](p, `document.getElementById("base").value`), "the text field follows")
	require.Equal(t, "120ms", eval[string](p, `document.getElementById("slider-base").getAttribute("aria-valuetext")`))
	require.Contains(t, p.text("#line"), "exponential 120ms")
	require.Contains(t, eval[string](p, `location.hash`), "base=120ms", "a link holds what is set")

	p.next(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("slider-max_attempts"); s.value = 7; s.dispatchEvent(new Event("input", {bubbles: true})); })()`))
	require.Contains(t, p.text("#line"), "8 attempts")
	require.NotEqual(t, facts, p.text("#plan-facts"))
	require.NotEqual(t, schedule, p.picture("schedule"))

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
	// The first question is held back until the second is answered. Aborting is taken away from it, so that its answer
	// does come, late.
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

// A page that was opened by a link with a policy alone writes links that another page opens.
func TestLinkFromAnotherPageOpensTheSameState(t *testing.T) {
	p := open(t, "#attempt_timeout=&base=3s&cap=&deadline=&factor=&inline=no&jitter=none&jitter_ratio=&max_attempts=7&mode=exponential")
	require.Contains(t, p.text("#line"), "7 attempts, exponential 3s")
	p.next(choose("rate", "12"))
	link := eval[string](p, `location.hash`)
	p.next(choose("max_attempts", "4"), choose("base", "100ms"), choose("cap", "300ms"), choose("factor", "2"), choose("jitter", "full"),
		choose("attempt_timeout", "1s"), choose("inline", "yes"), choose("deadline", ""), choose("rate", "70"), choose("jitter_ratio", "0.2"))
	require.Empty(t, eval[string](p, `location.hash`), "every page begins with this")

	q := open(t, link)
	require.Contains(t, q.text("#line"), "7 attempts, exponential 3s")
	require.Equal(t, "12", eval[string](q, `document.getElementById("rate").value`))
	require.Equal(t, link, eval[string](q, `location.hash`))
}

// The colors of attempts and goodput differ without red, green or blue cones: in L*a*b*, with the vision as G. M.
// Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
// Deficiency" (2009) has it, they are 40 apart at least.
func TestAttemptsAndGoodputDifferForTheColorBlind(t *testing.T) {
	p := open(t, "")
	for _, scheme := range []string{"light", "dark"} {
		p.prefers("prefers-color-scheme", scheme)
		color := func(class string) string {
			return eval[string](p, fmt.Sprintf(`getComputedStyle(document.querySelector("#load path.curve.%s")).stroke`, class))
		}
		attempts, goodput := color("red"), color("blue")
		for name, seen := range visions {
			require.Greater(t, distance(seen, attempts, goodput), 40., "%s, %s: %s and %s", scheme, name, attempts, goodput)
		}
	}
}

// visions turn linear RGB into the colors that are seen.
var visions = map[string][3][3]float64{
	"all":      {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"no red":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"no green": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"no blue":  {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func distance(seen [3][3]float64, a, b string) float64 {
	la, lb := lab(seen, a), lab(seen, b)
	return math.Sqrt((la[0]-lb[0])*(la[0]-lb[0]) + (la[1]-lb[1])*(la[1]-lb[1]) + (la[2]-lb[2])*(la[2]-lb[2]))
}

// lab returns a color such as rgb(88, 166, 255) as it is seen, in CIE L*a*b*, white point D65.
func lab(seen [3][3]float64, color string) [3]float64 {
	var bytes [3]int
	if _, err := fmt.Sscanf(color, "rgb(%d, %d, %d)", &bytes[0], &bytes[1], &bytes[2]); err != nil {
		panic(err)
	}
	var linear [3]float64
	for i := range linear {
		c := float64(bytes[i]) / 255
		if linear[i] = c / 12.92; c > 0.04045 {
			linear[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	apply := func(m [3][3]float64, v [3]float64) (w [3]float64) {
		for i, row := range m {
			w[i] = min(max(row[0]*v[0]+row[1]*v[1]+row[2]*v[2], 0), 1.1)
		}
		return w
	}
	xyz := apply([3][3]float64{{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}, apply(seen, linear))
	f := func(t float64) float64 {
		if t > 216./24389 {
			return math.Cbrt(t)
		}
		return (24389./27*t + 16) / 116
	}
	x, y, z := f(xyz[0]/0.95047), f(xyz[1]), f(xyz[2]/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func TestPresetsAndStorm(t *testing.T) {
	p := open(t, "")
	press := func(label string) step {
		return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll("#presets button")].find((b) => b.textContent === %q).click()`, label))
	}
	p.next(press("Cautious"))
	require.Contains(t, p.text("#line"), "6 attempts, list: 1m 10m 1h 4h 12h (17h11m in all)")
	p.next(press("See a storm"))
	require.Contains(t, p.text("#verdict"), "Came back in 0 of 10 simulations")
	require.Equal(t, "lost", eval[string](p, `document.getElementById("verdict").dataset.kind`))
	require.Contains(t, p.text("#simulation-facts"), "none")
	require.Contains(t, p.text("#simulation-title"), "one of the 10 that do not come back")
	p.save("storm")
	p.next(choose("budget", "shared"))
	require.NotContains(t, p.text("#simulation-facts"), "none", "a budget that successes fund brings the fleet back")
	require.True(t, eval[bool](p, `document.getElementById("no-budget").checkVisibility()`))
}

// While the page counts, the old charts are pale and the verdict is that of the seeds so far.
func TestThePageCounts(t *testing.T) {
	p := open(t, "")
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"wide-light", "light", 1280, 900}, {"wide-dark", "dark", 1280, 900}, {"phone-light", "light", 390, 844}, {"phone-dark", "dark", 390, 844}} {
		p.prefers("prefers-color-scheme", look.scheme)
		p.run(chromedp.EmulateViewport(look.width, look.height))
		p.next(choose("rate", "69"), choose("trigger_length", "10s"))
		p.save("counted-" + look.name)
		p.run(choose("trigger_length", "4m"), choose("rate", "60"))
		p.until(`document.body.classList.contains("pale")`)
		p.save("pale-" + look.name)
		p.until(`document.getElementById("verdict").dataset.kind === "counting" && document.getElementById("count").value > 0 && document.getElementById("count").checkVisibility()`)
		p.save("counting-" + look.name)
		require.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth`), int(look.width))
		p.until(`!document.body.hasAttribute("aria-busy")`)
	}
}

func TestDarkModeChangesTheCharts(t *testing.T) {
	p := open(t, "")
	const stroke = `getComputedStyle(document.querySelector("#load path.curve.red")).stroke`
	light, back := eval[string](p, stroke), eval[string](p, `getComputedStyle(document.body).backgroundColor`)
	p.prefers("prefers-color-scheme", "dark")
	p.until(fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q && %s !== %q`, back, stroke, light))
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
	p.until(fits + ` && document.querySelector("#load svg").viewBox.baseVal.width <= 360`)
	p.save("phone")
	p.prefers("prefers-color-scheme", "dark")
	p.until(fits)
	p.save("phone-dark")
	// Long words of a policy do not widen the page.
	p.next(choose("mode", "list"), choose("delays", "1h2m3.456789s, 2h2m3.456789s, 3h2m3.456789s, 4h2m3.456789s"), choose("cap", ""))
	p.until(fits)
}

// While a slider moves, the chart that answers to it is in view, above it.
func TestPhoneShowsTheChartBesideTheSlider(t *testing.T) {
	p := open(t, "")
	p.run(chromedp.EmulateViewport(360, 667, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
	p.until(`document.querySelector("#load svg").viewBox.baseVal.width <= 360`)
	for figure, form := range map[string]string{"schedule": "policy-form", "load": "fleet-form"} {
		hidden := fmt.Sprintf(`[...document.querySelectorAll("#%s input[type=range]")].filter((slider) => {
			if (!slider.checkVisibility()) return false;
			slider.scrollIntoView({ block: "end" });
			const chart = document.querySelector("#%s svg").getBoundingClientRect(), at = slider.getBoundingClientRect();
			const head = document.querySelector("header").getBoundingClientRect();
			return chart.top < head.bottom - 1 || chart.bottom > at.top || at.bottom > innerHeight + 1;
		}).map((slider) => slider.id)`, form, figure)
		require.Empty(t, eval[[]string](p, hidden), figure)
	}
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

// The static form answers as the server does, in a worker thread.
func TestStaticForm(t *testing.T) {
	chromium(t)
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "../../page.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(files.Close)
	p, served := show(t, files.URL+"/", ""), open(t, "")
	for _, q := range []*page{p, served} {
		q.next(choose("rate", "40"), choose("budget", "client"))
	}
	for _, selector := range []string{"#verdict", "#line", "#why", "#verdict-facts", "#advice", "#plan-facts", "#findings", "#simulation-facts"} {
		require.Equal(t, served.text(selector), p.text(selector))
	}
	require.Equal(t, served.picture("load"), p.picture("load"))
	require.Equal(t, eval[string](served, `location.hash`), eval[string](p, `location.hash`))

	p.run(choose("base", "250"))
	p.until(`document.body.classList.contains("stale")`)
	require.Contains(t, p.text("#error-base"), "has no unit")
	p.next(choose("base", "250ms"))

	// Steps of a slider that follow each other are answered by the newest.
	for _, rate := range []string{"41", "42", "43", "44", "45"} {
		p.run(choose("rate", rate))
	}
	p.next(choose("rate", "12"))
	require.Contains(t, p.text("#why"), "12 runs/s")
	p.save("static")
}
