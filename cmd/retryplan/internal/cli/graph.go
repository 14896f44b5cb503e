package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
)

// graph is the file that a picture goes to, empty for none.
type graph struct{ file string }

func (g *graph) add(flags *pflag.FlagSet) {
	flags.Var(&funcFlag{set: func(text string) error {
		if plots.CheckFile(text) != nil {
			return errors.New("give a file that ends in .svg")
		}
		if g.file != "" {
			return fmt.Errorf("%s is given already, and one picture is drawn", g.file)
		}
		g.file = text
		return nil
	}, kind: "file"}, "plot", "draw a picture into this `file`, which ends in .svg")
}

// fits refuses a picture of more policies than one can show, before anything is computed.
func (g *graph) fits(policies int) error {
	if g.file != "" && policies > plots.Most {
		return misusef("a picture shows up to %d policies, not %d", plots.Most, policies)
	}
	return nil
}

// draw puts a picture into the file, if there is one.
func (a *app) draw(g *graph, picture func() (*plots.Picture, error)) error {
	if g.file == "" {
		return nil
	}
	drawn, err := picture()
	if err != nil {
		return err
	}
	if err := drawn.Save(g.file); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	a.remark("drew %s", g.file)
	return nil
}
