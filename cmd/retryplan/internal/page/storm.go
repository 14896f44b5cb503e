package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

const (
	// maxHeld is the number of runs, attempts and events that a simulation may keep. They take about 100 MiB as they grow.
	maxHeld = 1_000_000
	// pace is the least time between two answers about a count that grows.
	pace = 100 * time.Millisecond
)

// verdict is a count of seeds in words.
type verdict struct {
	Kind    string    `json:"kind"`  // counting, back, mixed, lost
	Title   string    `json:"title"` // one sentence
	Text    string    `json:"text"`  // the arithmetic about every trigger
	Note    string    `json:"note"`  // why there are fewer seeds, or empty
	Facts   say.Facts `json:"facts"`
	Counted int       `json:"counted"`
	Of      int       `json:"of"`
}

// simulation is one seed in pictures and figures.
type simulation struct {
	Title string    `json:"title"` // which seed
	Load  chart     `json:"load"`
	Queue chart     `json:"queue"`
	Facts say.Facts `json:"facts"`
}

// advice is a change with the count of the fleet that makes it.
type advice struct {
	Change string `json:"change"`
	Count  string `json:"count"`
	Effect string `json:"effect"` // "changes nothing" or empty
}

// Why a count ended early.
var (
	errLimit = errors.New("took too long")
	errLarge = errors.New("is too large for this page")
)

// storm counts the seeds of the fleet, draws one of them, and simulates advice. It reports its progress.
func (q *question) storm(ctx context.Context, a *answer, z Size, ask *Question) error {
	s := &storm{question: q, answer: a, size: z, ask: ask, asked: retryplan.Question{Policy: q.policy, Fleet: q.fleet, Seeds: seeds, Seed: 1}}
	v, err := s.count(ctx)
	if err != nil {
		return err
	}
	s.tell()
	return s.advise(ctx, v)
}

// seeds is the number of seeds that the page asks for.
const seeds = 20

// storm is the simulations of a question under way.
type storm struct {
	*question
	answer *answer
	size   Size
	ask    *Question
	asked  retryplan.Question
	told   time.Time
	drawn  uint64 // the seed that is shown; 0 is none
}

// limited calls do with a context that ends after the limit, or once too much is kept in memory, and returns the reason if
// it ended early. known is called as the count grows.
func (s *storm) limited(ctx context.Context, known func(ctx context.Context, v retryplan.Verdict), do func(ctx context.Context, q retryplan.Question) error) (early, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, s.ask.Limit, errLimit)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := s.asked
	q.Progress = func(v retryplan.Verdict, held int) {
		if held > maxHeld {
			cancel(errLarge)
		}
		known(ctx, v)
		if s.ask.Pause != nil {
			s.ask.Pause()
		}
	}
	err = do(ctx, q)
	if errors.Is(err, errLimit) || errors.Is(err, errLarge) {
		return err, nil
	}
	return nil, err
}

// count counts the seeds, and draws one with the commoner outcome.
func (s *storm) count(ctx context.Context) (v retryplan.Verdict, err error) {
	grows := func(ctx context.Context, known retryplan.Verdict) {
		if known.Seeds == 0 && s.told.IsZero() {
			s.tell() // of the plan
		}
		if known.Seeds == 0 || known.Seeds > 1 && time.Since(s.told) < pace {
			return
		}
		if known.Seeds == 1 {
			_ = s.draw(ctx, &known) // an error ends the count as well
		}
		s.answer.Verdict = s.verdict(&known, "")
		s.tell()
	}
	early, err := s.limited(ctx, grows, func(ctx context.Context, q retryplan.Question) (err error) {
		v, err = retryplan.Judge(ctx, q)
		return err
	})
	if err != nil {
		return v, err
	}
	note := ""
	if early != nil {
		note = fmt.Sprintf("The simulation %v: %d of %d seeds were counted.", early, v.Seeds, seeds)
	}
	counted := s.verdict(&v, note)
	if counted.Kind = kind(&v); v.Seeds > 0 {
		err = s.draw(ctx, &v)
	}
	s.answer.Verdict = counted
	return v, err
}

func (s *storm) tell() {
	s.told = time.Now()
	if body, err := s.answer.line(); err == nil {
		s.ask.Tell(body)
	}
}

// verdict returns the count so far.
func (s *storm) verdict(v *retryplan.Verdict, note string) *verdict {
	return &verdict{
		Kind: "counting", Title: capital(v.String()) + ".", Text: capital(say.Storm(s.policy, s.fleet)) + ".", Note: note, Counted: v.Seeds, Of: seeds,
		Facts: say.Verdict(v)[1:], // the first is the title
	}
}

// kind returns the color of a verdict.
func kind(v *retryplan.Verdict) string {
	switch {
	case v.Seeds == 0:
		return "counting"
	case v.Back == v.Seeds:
		return "back"
	case 2*v.Back > v.Seeds:
		return "mixed"
	default:
		return "lost"
	}
}

// draw simulates a seed with the commoner outcome once more, unless it is drawn already.
func (s *storm) draw(ctx context.Context, v *retryplan.Verdict) error {
	shown := simulation{}
	if s.answer.Simulation != nil {
		shown = *s.answer.Simulation
	}
	if s.drawn != v.Drawn {
		r, err := retryplan.Simulate(ctx, s.asked, v.Drawn)
		if err != nil {
			return err
		}
		s.drawn = v.Drawn
		facts, summary := say.Simulation(&r), "Simulation."
		for _, f := range facts {
			summary += " " + f.Name + ": " + f.Figure + f.More + "."
		}
		picture := plots.Simulation(r)
		low := Size{s.size.Width, min(s.size.Most, 170)}
		shown = simulation{Load: chart{s.size.part(picture, 0), summary}, Queue: chart{low.part(picture, 1), "Queue. " + summary}, Facts: facts}
	}
	shown.Title = capital(say.Drawn(v))
	s.answer.Simulation = &shown
	return nil
}

// advise simulates changes.
func (s *storm) advise(ctx context.Context, v retryplan.Verdict) error {
	if v.Seeds == 0 {
		return nil
	}
	s.answer.Advice = []advice{}
	_, err := s.limited(ctx, func(context.Context, retryplan.Verdict) {}, func(ctx context.Context, q retryplan.Question) error {
		all, err := retryplan.Advise(ctx, q, v, s.lint()...)
		for _, one := range all {
			effect := ""
			if one.Verdict.Back*v.Seeds == v.Back*one.Verdict.Seeds {
				effect = "It changes nothing about the count."
			}
			s.answer.Advice = append(s.answer.Advice, advice{one.Change, say.Count(&one.Verdict), effect})
		}
		return err
	})
	slices.SortStableFunc(s.answer.Advice, func(x, y advice) int { return cmp.Compare(len(x.Effect), len(y.Effect)) }) // changes that help come first
	return err
}

// capital returns text with a capital letter at its start.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
