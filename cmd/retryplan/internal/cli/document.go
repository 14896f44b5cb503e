package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// document is what a file says, as the JSON that retryconf reads, and the lines of what it says.
type document struct {
	data []byte
	root *yaml.Node // nil if the lines are not known
}

// readDocument reads JSON, which begins with a brace, or YAML.
func readDocument(data []byte) (document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark with which some editors begin UTF-8
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return document{}, errors.New("the document is empty")
	}
	var root yaml.Node
	if text[0] == '{' || text[0] == '[' {
		// JSON is YAML but for tabs, which a string of valid JSON has not. What is wrong with other JSON is for
		// retryconf to say.
		if !json.Valid(data) || yaml.Unmarshal(bytes.ReplaceAll(data, []byte("\t"), []byte(" ")), &root) != nil {
			return document{data: data}, nil
		}
		return document{data, &root}, nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&root); err != nil {
		return document{}, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return document{}, errors.New("the file has more than one document")
	}
	var value any
	if err := root.Decode(&value); err != nil {
		return document{}, err
	}
	converted, err := json.Marshal(value)
	if err != nil {
		return document{}, fmt.Errorf("yaml: a key is not text: %w", err)
	}
	return document{converted, &root}, nil
}

// place is the position of a policy in a document.
type place struct {
	file    string
	line    int               // of the policy; zero if it is not known
	keys    map[string]int    // the lines of its fields
	ignored map[string]string // the reason for each finding that comments ignore
}

// place returns the place of a policy of a catalog, or that of the whole document for the name "".
func (d document) place(file, name string) (place, error) {
	if file == "-" {
		return place{}, nil
	}
	p := place{file: file, keys: map[string]int{}, ignored: map[string]string{}}
	if d.root == nil {
		return p, nil
	}
	top := d.root.Content[0]
	key, policy := top, top
	if name != "" {
		_, policies := child(top, "policies")
		if key, policy = child(policies, name); key == nil {
			return p, nil
		}
	}
	p.line = key.Line
	for i := 0; i+1 < len(policy.Content); i += 2 {
		p.keys[policy.Content[i].Value] = policy.Content[i].Line
	}
	nodes := append([]*yaml.Node{d.root, top, key}, below(policy)...)
	if len(top.Content) > 0 {
		nodes = append(nodes, top.Content[0]) // whose comment that of the document is
	}
	for _, n := range nodes {
		for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for _, m := range ignoring.FindAllStringSubmatch(text, -1) {
				code, reason, _ := strings.Cut(strings.TrimSpace(m[1]), " ")
				if err := checkIgnored(code, strings.TrimSpace(reason)); err != nil {
					return p, fmt.Errorf("line %d: retryplan:ignore: %w", n.Line, err)
				}
				p.ignored[code] = strings.TrimSpace(reason)
			}
		}
	}
	return p, nil
}

// ignoring is a comment for the linter: # retryplan:ignore no-jitter there is one client.
var ignoring = regexp.MustCompile(`(?m)^\s*#+\s*retryplan:ignore\b(.*)$`)

// child returns a key of a mapping and its value, nil if there is none.
func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// below returns n and all that it has.
func below(n *yaml.Node) []*yaml.Node {
	all := []*yaml.Node{n}
	for _, c := range n.Content {
		all = append(all, below(c)...)
	}
	return all
}

// lineOf returns the line of the first field that a change names and the policy has, or that of the policy.
func (p place) lineOf(f retryplan.Finding) int {
	for _, name := range goName.FindAllString(f.Change, -1) {
		if line, ok := p.keys[wire.Snake(name)]; ok {
			return line
		}
	}
	return p.line
}

// checkIgnored refuses codes that no finding has, CODE or POLICY:CODE, and ignoring one without a reason.
func checkIgnored(which, reason string) error {
	code := which[strings.LastIndex(which, ":")+1:]
	if !slices.Contains(append(retryplan.Codes(), verdicts...), code) {
		return fmt.Errorf("there is no finding %q", code)
	}
	if reason == "" {
		return fmt.Errorf("%s has no reason", code)
	}
	return nil
}
