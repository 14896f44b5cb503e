package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheChangelogKeepsItsForm holds the form of Keep a Changelog, with one line for each change that a user of a
// package notices.
func TestTheChangelogKeepsItsForm(t *testing.T) {
	data, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	text := string(data)
	require.True(t, strings.HasPrefix(text, "# Changelog\n"))
	require.Equal(t, 1, strings.Count(text, unreleased))
	section := regexp.MustCompile(`^## \[(Unreleased|(?:[a-z/]+/v)?\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?$`)
	kind := regexp.MustCompile(`^### (Added|Changed|Deprecated|Removed|Fixed|Security)$`)
	change := regexp.MustCompile(`^- ([a-z][a-z/, ]*): .*[.]$`)
	var version, under string
	seen := 0
	for i, line := range strings.Split(text, "\n") {
		require.LessOrEqual(t, len([]rune(line)), 140, line)
		switch {
		case strings.HasPrefix(line, "## "):
			found := section.FindStringSubmatch(line)
			require.NotNil(t, found, line)
			version, under = found[1], ""
			require.Contains(t, text, "\n["+version+"]: https://", "the link of a version")
		case strings.HasPrefix(line, "#") && i > 0:
			require.NotEmpty(t, version, line)
			require.Regexp(t, kind, line)
			under = line
		case strings.HasPrefix(line, "-"):
			seen++
			require.NotEmpty(t, under, line)
			found := change.FindStringSubmatch(line)
			require.NotNil(t, found, line)
			for _, room := range strings.Split(found[1], ", ") {
				if room != "retry" {
					require.DirExists(t, filepath.Join("../..", room), line)
				}
			}
		case under != "" && version != "":
			require.Regexp(t, `^$|^\[`, line, "a change is one line")
		}
	}
	require.Positive(t, seen)
}

func TestNotes(t *testing.T) {
	const text = "# Changelog\n\nHow.\n\n## [Unreleased]\n\n- next\n\n## [0.1.0] - 2026-12-24\n\nFirst.\n\n- new\n\n[Unreleased]: https://x\n"
	for _, row := range []struct{ text, version, notes string }{
		{text, "v0.1.0", "First.\n\n- new\n"},
		{text, "v0.2.0", "- next\n"},
	} {
		section, err := notes(row.text, row.version)
		require.NoError(t, err)
		require.Equal(t, row.notes, section)
	}
	_, err := notes("# Changelog\n", "v0.1.0")
	require.EqualError(t, err, "CHANGELOG.md has no section for v0.1.0")
}
