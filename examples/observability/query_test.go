package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is a parsed PromQL expression.
type query struct {
	metrics []string
	// unknown are the metrics, labels and values of labels that it names and that are not emitted.
	unknown []string
	// groups are the labels that some aggregation keeps: a legend or an annotation can show them.
	groups []string
}

// variables are replaced as Grafana does it.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h")

// read parses an expression, and reports the names in it that are not emitted.
func (e emitted) read(expr string) (query, error) {
	var q query
	root, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(expr))
	if err != nil {
		return q, fmt.Errorf("%s: %w", expr, err)
	}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			q.metrics = append(q.metrics, n.Name)
			q.unknown = append(q.unknown, e.unknownIn(n)...)
		case *parser.AggregateExpr:
			q.groups = append(q.groups, n.Grouping...)
			q.unknown = append(q.unknown, e.unknownBelow(n.Expr, n.Grouping)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				q.unknown = append(q.unknown, e.unknownBelow(n, n.VectorMatching.MatchingLabels)...)
				q.unknown = append(q.unknown, e.unknownBelow(n, n.VectorMatching.Include)...)
			}
		}
		return nil
	})
	return q, nil
}

// unknownIn returns the names in a selector that are not emitted.
func (e emitted) unknownIn(n *parser.VectorSelector) (unknown []string) {
	known, ok := e.metrics[n.Name]
	if !ok {
		return []string{n.Name}
	}
	for _, m := range n.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if known[m.Name] == nil {
			unknown = append(unknown, n.Name+"{"+m.Name+"}")
			continue
		}
		if strings.Contains(m.Value, "$") { // chosen by who looks
			continue
		}
		for value := range strings.SplitSeq(m.Value, "|") {
			if !known[m.Name][value] {
				unknown = append(unknown, fmt.Sprintf("%s{%s=%q}", n.Name, m.Name, value))
			}
		}
	}
	return unknown
}

// unknownBelow returns the labels that no metric below node has.
func (e emitted) unknownBelow(node parser.Node, wanted []string) (unknown []string) {
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			for _, label := range wanted {
				if e.metrics[n.Name][label] == nil {
					unknown = append(unknown, n.Name+"{"+label+"}")
				}
			}
		}
		return nil
	})
	return unknown
}

// family returns the name in the TYPE line of a metric.
func (e emitted) family(metric string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(metric, suffix); cut && slices.Contains(e.families, base) {
			return base
		}
	}
	return metric
}

var shownLabel = regexp.MustCompile(`{{ *(?:\$labels\.)?([a-z_]+) *}}`)

// shownIn returns the labels that a legend or an annotation shows.
func shownIn(text string) (labels []string) {
	for _, found := range shownLabel.FindAllStringSubmatch(text, -1) {
		labels = append(labels, found[1])
	}
	return labels
}
