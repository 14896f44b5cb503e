package web

import (
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// verdict is the certificate in words.
type verdict struct {
	Kind  string `json:"kind"`  // safe, vulnerable, metastable, overloaded
	Title string `json:"title"` // one sentence
	Text  string `json:"text"`  // why
	Facts []fact `json:"facts"`
}

// verdict certifies the fleet.
func (q question) verdict() (verdict, error) {
	c, err := retryplan.Certify(q.policy, q.fleet)
	if err != nil {
		return verdict{}, err
	}
	what, why := say.Stability(&c, q.fleet)
	kind := c.Stability.String()
	return verdict{
		Kind:  kind,
		Title: strings.ToUpper(kind[:1]) + kind[1:] + ": " + strings.ToLower(what[:1]) + strings.TrimRight(what[1:], ":.") + ".",
		Text:  strings.ToUpper(why[:1]) + why[1:] + " The law: " + say.Law(c.Law) + ".",
		Facts: certificateFacts(c),
	}, nil
}

func certificateFacts(c retryplan.Certificate) []fact {
	never := func(d time.Duration, otherwise string) string {
		if d < 0 {
			return otherwise
		}
		return say.Span(d)
	}
	tipping := never(c.Tipping, "no length")
	if c.Tipping == 0 {
		tipping = "none needed: chance is enough"
	}
	return []fact{
		{"Attempts per run in a storm", say.Number(c.Attempts)},
		{"Hidden capacity", say.Number(c.HiddenCapacity) + " runs/s"},
		{"Predicted recovery", never(c.Recovery, "never")},
		{"Tips at a trigger of", tipping},
		{"Margin", say.Percent(c.Margin)},
		{"Law", c.Law.String()},
	}
}
