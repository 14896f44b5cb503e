package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
)

// graph is where a picture goes.
type graph struct {
	file string
	text bool
}

func (g *graph) add(flags *pflag.FlagSet) {
	flags.Var(&funcFlag{set: func(text string) error {
		if text == "" {
			return errors.New("give a file that ends in .svg")
		}
		if g.file != "" {
			return fmt.Errorf("%s is given already, and one picture is drawn", g.file)
		}
		g.file = text
		return nil
	}, kind: "file"}, "plot", "draw a picture into this `file`, which ends in .svg")
	flags.BoolVar(&g.text, "graph", false, "draw a picture in characters (on a terminal: the default, --graph=false is without)")
}

// validate refuses a file that cannot be drawn into, before anything is computed.
func (g *graph) validate() error {
	if g.file == "" {
		return nil
	}
	if err := plots.CheckFile(g.file); err != nil {
		return &misuse{fmt.Errorf("--plot: %w", err)}
	}
	return nil
}

// mostDrawn is how many policies one picture can show.
const mostDrawn = 8

// fits refuses a picture of more policies than one can show, before anything is computed. On a terminal, which is drawn on
// unasked, there is none then.
func (a *app) fits(g *graph, policies int) error {
	if policies <= mostDrawn {
		return nil
	}
	if g.file != "" || g.text {
		return misusef("a picture shows up to %d policies, not %d", mostDrawn, policies)
	}
	a.Width = 0
	return nil
}

// wanted reports whether there is anything to draw.
func (a *app) wanted(cmd *cobra.Command, g *graph) bool { return g.file != "" || a.inText(cmd, g) }

func (a *app) inText(cmd *cobra.Command, g *graph) bool {
	if a.json {
		return false
	}
	if cmd.Flags().Changed("graph") {
		return g.text
	}
	return a.Width > 0 && g.file == ""
}

// draw puts a picture where the flags want it.
func (a *app) draw(cmd *cobra.Command, g *graph, picture *plots.Picture, err error) error {
	if err != nil {
		return err
	}
	if a.inText(cmd, g) {
		width := measure
		if a.Width > 0 {
			width = a.Width
		}
		a.line("")
		fmt.Fprint(a.out, picture.Text(width))
	}
	if g.file == "" {
		return nil
	}
	if err := picture.Save(g.file); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	a.remark("drew %s", g.file)
	return nil
}
