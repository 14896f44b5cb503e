package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheLicenses lists, for each released module, the licenses of what a program links that imports it: of the modules
// of its packages' imports, tests aside. "none" is a module without a license file. What is not permissive is said where
// the module is installed.
func TestTheLicenses(t *testing.T) {
	list, err := readModules("../..")
	require.NoError(t, err)
	found := map[string]string{}
	for _, m := range list {
		licenses := map[string][]string{}
		linked := command(t, m.dir(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}", "./...")
		lines := strings.Split(strings.TrimSpace(linked), "\n")
		slices.Sort(lines)
		for _, line := range slices.Compact(lines) {
			path, dir, ok := strings.Cut(line, " ")
			if !ok || ours(path) {
				continue
			}
			require.NotEmpty(t, dir, "%s is not in the module cache", path)
			for _, license := range licensesOf(t, dir) {
				licenses[license] = append(licenses[license], path)
			}
		}
		var names []string
		for name, modules := range licenses {
			names = append(names, name)
			t.Logf("%s: %s: %s", m.folder, name, strings.Join(modules, " "))
		}
		slices.Sort(names)
		found[m.folder] = strings.Join(names, " ")
		page, err := os.ReadFile(filepath.Join(m.dir(), "README.md"))
		require.True(t, err == nil || os.IsNotExist(err))
		for _, path := range licenses["none"] {
			require.Contains(t, string(page), path+"` has no license file", m.folder)
		}
		require.Equal(t, len(licenses["MPL-2.0"]) > 0, strings.Contains(string(page), "MPL-2.0"), m.folder)
	}
	require.Equal(t, map[string]string{
		".":                      "",
		"retryplan":              "",
		"retrydebug":             "",
		"retryjob":               "Apache-2.0 MIT",
		"contrib":                "",
		"contrib/retryaws":       "Apache-2.0",
		"contrib/retryconnect":   "Apache-2.0 BSD-3-Clause",
		"contrib/retryfailsafe":  "BSD-3-Clause MIT",
		"contrib/retrygax":       "Apache-2.0 BSD-3-Clause MIT",
		"contrib/retrygrpc":      "Apache-2.0 BSD-3-Clause",
		"contrib/retryotel":      "Apache-2.0 BSD-3-Clause MIT",
		"contrib/retrypgx":       "BSD-3-Clause MIT",
		"contrib/retryriver":     "BSD-3-Clause MIT MPL-2.0",
		"contrib/retrytemporal":  "Apache-2.0 BSD-3-Clause MIT",
		"contrib/retryworkqueue": "",
		"cmd/retryjobs":          "Apache-2.0 BSD-3-Clause MIT MPL-2.0",
		"cmd/retryplan":          "Apache-2.0 BSD-3-Clause MIT",
		"cmd/retryvet":           "Apache-2.0 BSD-3-Clause",
	}, found)
}

// licensesOf returns the SPDX identifiers of the license files in the directory, or "none" if there is no such file.
func licensesOf(t *testing.T, dir string) (found []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name, _, _ := strings.Cut(strings.ToUpper(e.Name()), ".")
		if e.IsDir() || name != "LICENSE" && name != "LICENCE" && name != "COPYING" { // LICENSE-LOGO is of a picture
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		text, known := strings.Join(strings.Fields(string(data)), " "), false
		has := func(license string, words ...string) {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) }) {
				found, known = append(found, license), true
			}
		}
		has("Apache-2.0", "Apache License Version 2.0", "Apache License, Version 2.0")
		has("MPL-2.0", "Mozilla Public License Version 2.0", "Mozilla Public License, version 2.0")
		has("MIT", "Permission is hereby granted, free of charge, to any person")
		if has("BSD-3-Clause", "Neither the name"); !strings.Contains(text, "Neither the name") {
			has("BSD-2-Clause", "Redistribution and use in source and binary forms")
		}
		require.True(t, known, "%s has a license that this test does not know", filepath.Join(dir, e.Name()))
	}
	if found == nil {
		return []string{"none"}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
