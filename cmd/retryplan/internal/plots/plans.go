package plots

import (
	"fmt"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// mostShown is the number of attempts that are drawn. The waits of a policy with more have reached their cap.
const mostShown = 20

// Schedule draws the wait before each attempt: a bar from the shortest to the longest, and a line through the means. It
// shades the attempts that can never start.
func Schedule(p *retryplan.Plan) Picture {
	c := chart{height: 244, empty: "one attempt: there is no wait"}
	shown, name := p.Attempts, "attempt"
	if len(shown) > mostShown {
		shown, name = shown[:mostShown], fmt.Sprintf("attempt, of the first %d", mostShown)
	}
	var most time.Duration
	never, waits := series{class: "faint"}, series{class: "blue"}
	for i, a := range shown[1:] {
		w, n := a.Wait, float64(i+2)
		most = max(most, w.Max())
		waits.points = append(waits.points, point{n, w.Mean().Seconds()})
		waits.boxes = append(waits.boxes, box{n - 0.4, n + 0.4, w.Min().Seconds(), w.Max().Seconds()})
		if a.Never != 0 {
			never.name = "can never start (" + a.Never.Error() + ")"
			never.boxes = append(never.boxes, upright(n-.5, n+.5))
		}
	}
	c.series = []series{never, waits}
	c.x = axis{name: name, min: 1.4, max: float64(max(len(shown), 2)) + 0.6, steps: decades(1, 0, 6), text: say.Number}
	c.y = durationAxis("wait, mean and range", most+most/25)
	return Picture{c}
}
