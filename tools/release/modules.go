package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const rootPath = "github.com/retrygo/retry"

// versionsFile has the version of each module, from the root of the repository.
const versionsFile = "tools/release/versions.txt"

// released is a module that is released.
type released struct {
	folder  string // from the root of the repository; "." is the root
	version string // released, or to come
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

// readModules returns the released modules in the order of versions.txt. It refuses a list that is out of order, one
// that lacks a module which a released one requires, and a requirement that is newer than the listed version.
func readModules(root string) ([]*released, error) {
	versions, err := os.ReadFile(filepath.Join(root, versionsFile))
	if err != nil {
		return nil, err
	}
	var list []*released
	for line := range strings.Lines(string(versions)) {
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
			if !ours(r.Mod.Path) {
				continue
			}
			listed := versionOf(list, r.Mod.Path)
			if listed == "" {
				return nil, fmt.Errorf("versions.txt: %s requires %s, which is not listed before it", m.folder, r.Mod.Path)
			}
			if semver.Compare(r.Mod.Version, listed) > 0 {
				return nil, fmt.Errorf("versions.txt: %s requires %s %s, which is newer than the listed %s", m.folder, r.Mod.Path, r.Mod.Version, listed)
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
