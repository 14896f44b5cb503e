package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/retrygo/retry/retryplan"
)

// document is a file as the JSON that retryconf reads, with its lines.
type document struct {
	data []byte
	root *yaml.Node // nil if the lines are not known
}

// readDocument reads JSON, which begins with a brace, or YAML.
func readDocument(data []byte) (document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin UTF-8 with this mark
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return document{}, errors.New("the document is empty")
	}
	var root yaml.Node
	if text[0] == '{' || text[0] == '[' {
		// JSON is YAML except for tabs, which the strings of valid JSON do not have. retryconf reports what is wrong
		// with other JSON.
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

// place is the position of a policy.
type place struct {
	File string
	Line int // zero if it is not known
}

// place returns the place of a policy of a catalog, or that of the whole document for the name "".
func (d document) place(file, name string) place {
	if file == "-" {
		return place{}
	} else if d.root == nil {
		return place{File: file}
	}
	key := d.root.Content[0]
	if name != "" {
		_, policies := child(key, "policies")
		key, _ = child(policies, name)
	}
	if key == nil {
		return place{File: file}
	}
	return place{file, key.Line}
}

// child returns a key of a mapping and its value, or nil.
func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// checkIgnored refuses a CODE or POLICY:CODE that no finding has, and one without a reason.
func checkIgnored(which, reason string) error {
	code := which[strings.LastIndex(which, ":")+1:]
	if !slices.Contains(append(retryplan.Codes(), lostCode), code) {
		return fmt.Errorf("there is no finding %q", code)
	}
	if reason == "" {
		return fmt.Errorf("%s has no reason", code)
	}
	return nil
}
