package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const rootPath = "github.com/retrygo/retry"

//go:embed versions.txt
var versions string

// released is a module that is released.
type released struct {
	folder  string // from the root of the repository; "." is the root
	version string // to come
	file    string // its go.mod
	mod     *modfile.File
}

func (m *released) dir() string { return filepath.Dir(m.file) }

// tag returns the name of the tag that releases m.
func (m *released) tag() string {
	if m.folder == "." {
		return m.version
	}
	return m.folder + "/" + m.version
}

// readModules returns the released modules in the order of versions.txt. It refuses a list that is out of order, and
// one that lacks a module which a released one requires.
func readModules(root string) ([]*released, error) {
	var list []*released
	for line := range strings.Lines(versions) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 || !semver.IsValid(fields[1]) {
			return nil, fmt.Errorf("versions.txt: %q is not a folder and a version", strings.TrimSpace(line))
		}
		m := &released{folder: fields[0], version: fields[1], file: filepath.Join(root, fields[0], "go.mod")}
		data, err := os.ReadFile(m.file)
		if err != nil {
			return nil, err
		}
		if m.mod, err = modfile.Parse(m.file, data, nil); err != nil {
			return nil, err
		}
		if want := strings.TrimSuffix(rootPath+"/"+m.folder, "/."); m.mod.Module.Mod.Path != want {
			return nil, fmt.Errorf("%s is of module %s, not %s", m.file, m.mod.Module.Mod.Path, want)
		}
		for _, r := range m.mod.Require {
			if ours(r.Mod.Path) && versionOf(list, r.Mod.Path) == "" {
				return nil, fmt.Errorf("versions.txt: %s requires %s, which is not listed before it", m.folder, r.Mod.Path)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

func ours(path string) bool { return path == rootPath || strings.HasPrefix(path, rootPath+"/") }

func versionOf(list []*released, path string) string {
	i := slices.IndexFunc(list, func(m *released) bool { return m.mod.Module.Mod.Path == path })
	if i < 0 {
		return ""
	}
	return list[i].version
}

// setVersions makes every released module require the versions to come.
func setVersions(list []*released) error {
	for _, m := range list {
		changed := false
		for _, r := range slices.Clone(m.mod.Require) {
			want := versionOf(list, r.Mod.Path)
			if want == "" || want == r.Mod.Version {
				continue
			}
			if err := m.mod.AddRequire(r.Mod.Path, want); err != nil {
				return err
			}
			changed = true
		}
		if !changed {
			continue
		}
		data, err := m.mod.Format()
		if err == nil {
			err = os.WriteFile(m.file, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
