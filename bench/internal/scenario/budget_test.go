package scenario

import (
	"testing"

	"github.com/retrygo/retry/bench/internal/contest"
)

// TestBudgetsDoWhatIsMeasured runs each loop in as many goroutines as it is measured in; the loops check themselves.
func TestBudgetsDoWhatIsMeasured(t *testing.T) {
	for _, s := range Budget() {
		for _, c := range s.Contenders {
			t.Run(s.Name+"/"+c.Name, func(t *testing.T) {
				loop := c.New()
				for _, cores := range s.Cores {
					contest.Together(cores, func() {}, func(int) { loop(1000) })
				}
			})
		}
	}
}
