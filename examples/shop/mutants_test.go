//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var withMutants = flag.Bool("mutants", false, "put each mutant in place and look whether its test finds it: ten minutes and more")

// The root of the repository.
const root = "../.."

// mutant is a fault in a room that the shop stands on. Text occurs once in the file.
type mutant struct {
	name       string
	file       string
	text, with string
	finder     finder
}

// finder is a test that fails with a mutant in place.
type finder struct {
	folder, test string
	args         []string
}

var (
	theStorm = finder{"examples/shop", "TestNothingIsLostInAStorm", []string{"-long", "45s"}}
	// The shop has one worker, and even two meet at one job only after the lease of one that was suspended, a minute.
	twoWorkers = finder{"contrib/retryriver", "TestConformanceSQLite", nil}
	// An order whose item was not taken is not written, so in the shop no doubt of a gRPC call can hide one.
	threeProtocols = finder{"examples/layers", "TestDoubtPassesThroughAChainOfProtocols", nil}
)

// mutants are the ways to lose or double work that the default storm is for, and two of neighbors that it has no room for.
var mutants = []mutant{
	{"a POST without a key is sent again", "retryhttp/request.go",
		"\tif failed.Unsent || q.repeatable {", "\tif true {", theStorm},
	{"a POST without a key is hedged", "retryhttp/hedge.go",
		"\tif !isSafe(q.req.Method) && q.key == \"\" && !sendsKey(q.req.Header) {", "\tif false {", theStorm},
	{"a COMMIT is repeated without its probe", "retrysql/commit.go",
		"\t\tswitch committed, err := noted.committed(alive, tx); {", "\t\tswitch committed, err := false, error(nil); {", theStorm},
	{"the rest of a body is asked for from the wrong place", "retryhttp/resume.go",
		"\tb.next += int64(n)", "\tb.next += int64(n) &^ 1", theStorm},
	{"the doubt of a service is not heard", "retryhttp/rules.go",
		"\treturn slices.ContainsFunc(h[inDoubtHeader], func(value string) bool {", "\treturn slices.ContainsFunc(h[\"\"], func(value string) bool {", theStorm},
	{"a budget always pays", "budget.go",
		"\tb.refused.Add(1)\n\treturn false", "\treturn true", theStorm},
	{"a TTL is not looked at", "decide.go",
		"\tcase p.TTL > 0 && wait > p.TTL-elapsed:", "\tcase false:", theStorm},
	{"the queue has no fence", "contrib/retryriver/fence.go",
		"\t\t\tif !m.asAsked(&own, i, row) {", "\t\t\tif false {", twoWorkers},
	{"doubt is lost over gRPC", "contrib/retrygrpc/call.go",
		"trailer.Get(retryrpc.PushbackKey), trailer.Get(retryrpc.InDoubtKey)", "trailer.Get(retryrpc.PushbackKey), nil", threeProtocols},
}

func (m mutant) source(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	require.NoError(t, err)
	return string(text)
}

func TestEachMutantHasItsPlace(t *testing.T) {
	for _, m := range mutants {
		require.Equal(t, 1, strings.Count(m.source(t), m.text), "%s: %s", m.file, m.text)
	}
}

// TestEachMutantIsFound builds the finder of each mutant with the mutant in place, by an overlay of its file, and expects
// that it fails.
func TestEachMutantIsFound(t *testing.T) {
	if !*withMutants {
		t.Skip("no mutants: see README.md")
	}
	broken := regexp.MustCompile(`Messages: +\t(.*)`)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(m.source(t), m.text, m.with, 1)), 0o600))
			file, err := filepath.Abs(filepath.Join(root, m.file))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, file, changed), 0o600))
			by := m.finder
			args := []string{"test", "-overlay", overlay, "-count=1", "-timeout", "10m", "-run", "^" + by.test + "$", ".", "-args"}
			test := exec.Command("go", append(args, by.args...)...)
			test.Dir = filepath.Join(root, by.folder)
			out, err := test.CombinedOutput()
			require.Error(t, err, "%s has not found it", by.test)
			require.Contains(t, string(out), "--- FAIL: "+by.test, "it did not take place: %s", out)
			for _, invariant := range broken.FindAllStringSubmatch(string(out), -1) {
				t.Log("found by: " + invariant[1])
			}
		})
	}
}
