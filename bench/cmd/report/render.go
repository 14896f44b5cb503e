package main

import (
	"fmt"
	"strings"

	"github.com/retrygo/retry/bench/internal/contest"
)

// render returns the report in Markdown. Equal arguments give equal text. It returns contest.Judge's errors.
func render(env environment, results []contest.Result) (string, error) {
	judged, err := targets(results)
	if err != nil {
		return "", err
	}
	parts := []string{head(env), ahead(results), judged}
	for _, r := range results {
		parts = append(parts, section(r))
	}
	return strings.Join(parts, "\n"), nil
}

func head(env environment) string {
	var b strings.Builder
	b.WriteString("# Results\n\n")
	b.WriteString("What `retry` costs beside other libraries that do the same work, as written by this command:\n\n")
	fmt.Fprintf(&b, "```sh\n%s\n```\n\n", env.Command)
	fmt.Fprintf(&b, "Measured on %s (%s).\n", env.Date.Format("2006-01-02"), env.machine())
	fmt.Fprintf(&b, "Times are medians of %d rounds, in each of which every contender runs once, for about %v on each core;\n",
		env.Rounds, env.SampleTime)
	b.WriteString("± is the 95% confidence interval of the median. On several cores ns/op is the time that passes for each\n")
	b.WriteString("operation of all cores together. \"× limit\" is a multiple of the first limit, \"× ours\" of the first row of ours.\n")
	b.WriteString("Compare times only within one report: they depend on the machine, allocations do not.\n\n")
	if len(env.Peers) == 0 {
		b.WriteString("The versions of the peers are unknown: the binary does not say.\n")
		return b.String()
	}
	var rows [][]string
	for _, p := range env.Peers {
		rows = append(rows, []string{"`" + p.Path + "`", p.Version})
	}
	b.WriteString(table([]string{"peer", "version"}, rows, 2))
	return b.String()
}

// targets returns the verdicts on all targets.
func targets(results []contest.Result) (string, error) {
	var rows [][]string
	var reasons strings.Builder
	green := 0
	for _, r := range results {
		verdicts, err := contest.Judge(r)
		if err != nil {
			return "", err
		}
		for _, v := range verdicts {
			color := "**red**"
			switch {
			case v.Met:
				color = "green"
				green++
			case v.Why != "":
				fmt.Fprintf(&reasons, "- **%s, %s**: %s\n", r.Scenario.Name, v.Rule, v.Why)
			}
			rows = append(rows, []string{r.Scenario.Name, v.Rule, allowed(v, r.Scenario.Unit), measured(v, r.Scenario.Unit), color})
		}
	}
	text := fmt.Sprintf("## Targets\n\n%d of %d are green.\n", green, len(rows))
	if len(rows) > 0 {
		text += "\n" + table([]string{"scenario", "rule", "allowed", "measured", ""}, rows, 2)
	}
	if reasons.Len() > 0 {
		text += "\nWhat keeps it from being green:\n\n" + reasons.String()
	}
	return text, nil
}

func allowed(v contest.Verdict, unit string) string {
	relation := "≤ "
	if v.Kind == contest.Scaling {
		relation = "≥ "
	}
	bound := exact(v.Most)
	if len(bound) > 8 {
		bound = significant(v.Most, 3) // such as 1/15
	}
	return relation + withUnit(bound, v.Kind, unit)
}

// measured returns the measured value, a time with 3 digits or, where the target is missed so narrowly that those would show
// what is allowed, with as many as show the difference.
func measured(v contest.Verdict, unit string) string {
	if v.Missing != "" {
		return v.Missing
	}
	switch v.Kind {
	case contest.Allocs, contest.Beyond, contest.Fewest:
		return withUnit(exact(v.Measured), v.Kind, unit)
	}
	digits := 3
	for !v.Met && digits < 17 && significant(v.Measured, digits) == significant(v.Most, digits) {
		digits++
	}
	return withUnit(significant(v.Measured, digits), v.Kind, unit)
}

func withUnit(number string, kind contest.Kind, unit string) string {
	switch kind {
	case contest.Ratio, contest.Best, contest.Scaling:
		return number + "×"
	case contest.Value:
		return number + " " + unit
	case contest.Beyond, contest.Fewest:
		return number + " more allocs/op"
	default:
		return number + " allocs/op"
	}
}

// table returns a Markdown table. Columns from the given one on are numbers, aligned to the right.
func table(header []string, rows [][]string, numbers int) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	for i := range header {
		if i < numbers {
			b.WriteString("|---")
		} else {
			b.WriteString("|--:")
		}
	}
	b.WriteString("|\n")
	for _, cells := range rows {
		line(cells)
	}
	return b.String()
}
