package web_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestZZ(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
			p := open(t, "")
			p.run(chromedp.EmulateViewport(size[0], size[1]))
			p.prefers("prefers-color-scheme", scheme)
			p.until(fmt.Sprintf(`document.querySelector("#load svg").viewBox.baseVal.width <= %d && !document.body.hasAttribute("aria-busy")`, size[0]))
			shot := func(name string) {
				image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(fmt.Sprintf("/tmp/shots/%s-%d-%s.png", name, size[0], scheme), image, 0o644))
			}
			shot("first")
			p.next(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#presets button")].at(-1).click()`))
			shot("storm")
			if scheme == "light" {
				image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(fmt.Sprintf("/tmp/shots/full-%d.png", size[0]), image, 0o644))
			}
		}
	}
}
