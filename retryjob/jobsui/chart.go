package jobsui

import (
	"fmt"
	"strings"
)

// chart is the rate of the last hour as two lines.
type chart struct {
	Succeeded, Failed         string // the points of the lines
	AllSucceeded, AllFailed   int
	width, height, highest, n int
}

// chartOf returns nil if no job ended.
func chartOf(s *Summary) *chart {
	if len(s.Rate) == 0 {
		return nil
	}
	c := &chart{width: 220, height: 40, n: len(s.Rate)}
	c.AllSucceeded, c.AllFailed = s.Ended()
	for _, r := range s.Rate {
		c.highest = max(c.highest, r.Succeeded, r.Failed)
	}
	c.Succeeded = c.line(s.Rate, func(r Rate) int { return r.Succeeded })
	c.Failed = c.line(s.Rate, func(r Rate) int { return r.Failed })
	return c
}

// line returns the points of a line that leaves room for its own width.
func (c *chart) line(rates []Rate, of func(Rate) int) string {
	points := make([]string, len(rates))
	for i, r := range rates {
		x := c.width * i / (c.n - 1)
		y := float64(c.height-1) - float64(c.height-2)*float64(of(r))/float64(c.highest)
		points[i] = fmt.Sprintf("%d,%.1f", x, y)
	}
	return strings.Join(points, " ")
}
