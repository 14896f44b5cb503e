package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// packAll writes each module at its version to come into dir, as GOPROXY=file://dir reads it.
func packAll(list []*released, dir string) error {
	for _, m := range list {
		if err := packOne(m, m.version, dir); err != nil {
			return err
		}
	}
	return nil
}

// packOne writes the list, info, mod and zip of one version (Go modules reference, "GOPROXY protocol").
func packOne(m *released, version, dir string) error {
	v := module.Version{Path: m.mod.Module.Mod.Path, Version: version}
	path, err := module.EscapePath(v.Path)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(m.file)
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
	if err := zip.CreateFromDir(file, v, m.dir()); err != nil {
		return fmt.Errorf("%s: %w", m.folder, err)
	}
	return file.Close()
}
