package check

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/token"
	"io"
	"net/url"
	"os"
	"strings"
	"unicode/utf16"

	"golang.org/x/tools/go/analysis"
)

type object = map[string]any

// sarif prints a SARIF 2.1.0 log of one run.
func sarif(w io.Writer, analyzers []*analysis.Analyzer, version string, found []finding) error {
	rules := []object{}
	index := map[string]int{}
	for i, a := range analyzers {
		short, full, _ := strings.Cut(a.Doc, "\n\n")
		if full == "" {
			full = short
		}
		index[a.Name] = i
		rules = append(rules, object{
			"id": a.Name, "helpUri": a.URL,
			"shortDescription": object{"text": short}, "fullDescription": object{"text": full}, "help": object{"text": full},
			"defaultConfiguration": object{"level": "error"},
		})
		if a.URL == "" {
			delete(rules[i], "helpUri")
		}
	}
	results := []object{}
	same := map[string]int{} // findings with one fingerprint, distinguished by their order
	for _, f := range found {
		lines, err := lines(f.start.Filename)
		if err != nil {
			return err
		}
		line := ""
		if f.start.Line <= len(lines) {
			line = strings.TrimSpace(lines[f.start.Line-1])
		}
		print := fmt.Sprintf("%x", sha256.Sum256([]byte(f.analyzer+"\n"+f.file+"\n"+line)))[:16]
		same[print]++
		results = append(results, object{
			"ruleId": f.analyzer, "ruleIndex": index[f.analyzer], "level": "error", "message": object{"text": f.message},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": (&url.URL{Path: f.file}).EscapedPath()},
				"region": object{
					"startLine": f.start.Line, "startColumn": column(lines, f.start),
					"endLine": f.end.Line, "endColumn": column(lines, f.end),
				},
			}}},
			"partialFingerprints": object{"primaryLocationLineHash": fmt.Sprintf("%s:%d", print, same[print])},
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(object{
		"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"runs": []object{{
			"columnKind": "utf16CodeUnits",
			"tool": object{"driver": object{
				"name": "retryvet", "version": version, "rules": rules,
				"informationUri": "https://github.com/retrygo/retry/tree/main/cmd/retryvet",
			}},
			"results": results,
		}},
	})
}

func lines(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	return strings.Split(string(data), "\n"), err
}

// column returns p's column in UTF-16 code units, counted from 1. Go's columns are bytes.
func column(lines []string, p token.Position) int {
	if p.Line > len(lines) || p.Column-1 > len(lines[p.Line-1]) {
		return p.Column
	}
	return len(utf16.Encode([]rune(lines[p.Line-1][:p.Column-1]))) + 1
}
