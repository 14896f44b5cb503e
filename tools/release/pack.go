package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// packAll writes each module at its version into dir, as GOPROXY=file://dir reads it. A module that has a tag of that
// version is packed as it was released, so that it meets the others as they will be.
func (r repository) packAll(list []*released, dir string) error {
	for _, m := range list {
		if _, err := r.git("rev-parse", "--verify", "--quiet", "refs/tags/"+m.tag()); err != nil {
			if err := packFolder(m, m.version, dir); err != nil {
				return err
			}
			continue
		}
		mod, err := r.git("show", "refs/tags/"+m.tag()+":"+path.Join(m.folder, "go.mod"))
		if err != nil {
			return err
		}
		folder := strings.TrimPrefix(m.folder, ".")
		pack := func(out io.Writer, v module.Version) error { return zip.CreateFromVCS(out, v, r.dir, m.tag(), folder) }
		if err := packOne(m, m.version, dir, []byte(mod+"\n"), pack); err != nil {
			return err
		}
	}
	return nil
}

// packFolder writes the module as it is in its folder.
func packFolder(m *released, version, dir string) error {
	mod, err := os.ReadFile(m.file)
	if err != nil {
		return err
	}
	return packOne(m, version, dir, mod, func(out io.Writer, v module.Version) error { return zip.CreateFromDir(out, v, m.dir()) })
}

// packOne writes the list, info, mod and zip of one version (Go modules reference, "GOPROXY protocol").
func packOne(m *released, version, dir string, mod []byte, pack func(io.Writer, module.Version) error) error {
	v := module.Version{Path: m.mod.Module.Mod.Path, Version: version}
	escaped, err := module.EscapePath(v.Path)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, version); err != nil {
		return err
	}
	for suffix, data := range map[string][]byte{".info": info, ".mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, version+suffix), data, 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pack(file, v); err != nil {
		return fmt.Errorf("%s: %w", m.folder, err)
	}
	return file.Close()
}
