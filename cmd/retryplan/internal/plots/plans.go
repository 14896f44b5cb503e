package plots

import (
	"fmt"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// mostShown is the number of attempts that are drawn. The waits of a policy with more have reached their cap.
const mostShown = 20

// schedule draws the wait before each attempt: a bar from the shortest to the longest, and a line through the means. If
// there is one plan, it also shades the attempts that can never start.
func schedule(plans []Plan) chart {
	c := chart{title: "Wait before each attempt", height: 244, empty: "one attempt: there is no wait"}
	last := 0
	for _, p := range plans {
		last = max(last, len(p.Plan.Attempts))
	}
	if last > mostShown {
		last, c.title = mostShown, fmt.Sprintf("Wait before each of the first %d attempts", mostShown)
	}
	var most time.Duration
	never := series{class: "faint"}
	wide := 0.8 / float64(len(plans))
	for i, p := range plans {
		s := series{name: short(p.Name), class: looks[i].class, dash: looks[i].dash}
		for j, a := range p.Plan.Attempts[1:min(len(p.Plan.Attempts), last)] {
			w, n := a.Wait, float64(j+2)
			x := n + (float64(i)+.5)*wide - 0.4
			most = max(most, w.Max())
			s.points = append(s.points, point{x, w.Mean().Seconds()})
			s.boxes = append(s.boxes, box{x - wide/2, x + wide/2, w.Min().Seconds(), w.Max().Seconds()})
			if a.Never != 0 {
				never.name = "can never start (" + a.Never.Error() + ")"
				never.boxes = append(never.boxes, upright(n-.5, n+.5))
			}
		}
		c.series = append(c.series, s)
	}
	if len(plans) == 1 {
		c.title += ": " + c.series[0].name
		c.series[0].name = ""
		c.series = []series{never, c.series[0]}
	}
	c.x = axis{name: "attempt", min: 1.4, max: float64(max(last, 2)) + 0.6, steps: decades(1, 0, 6), text: say.Number}
	c.y = durationAxis("wait, mean and range", most+most/25)
	return c
}
