// Release prepares a release of this repository's modules, whose versions to come are in versions.txt.
//
//	go run ./tools/release              sets the versions in every go.mod, dates the changelog, and prints the tags
//	go run ./tools/release -pack DIR    packs every module into DIR, to be served as GOPROXY=file://DIR
//	go run ./tools/release -api         lists the exported API
//	go run ./tools/release -tags        lists the tags alone
//	go run ./tools/release -notes       prints the changelog's section of the release, which is the tags' message
//
// It uses no network and no secret, and neither commits nor tags.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.api, "api", false, "list the exported API")
	flag.BoolVar(&o.tags, "tags", false, "list the tags")
	flag.BoolVar(&o.notes, "notes", false, "print the changelog's section")
	flag.StringVar(&o.pack, "pack", "", "pack every module into this `folder`")
	flag.StringVar(&o.root, "root", "", "with -pack: pack the root module alone, at this `version`")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	api, tags, notes bool
	pack, root       string
}

func run(out io.Writer, o options) error {
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	modules, err := readModules(root)
	switch {
	case err != nil:
		return err
	case o.api:
		return writeAPI(out, modules)
	case o.tags:
		for _, m := range modules {
			fmt.Fprintln(out, m.tag())
		}
		return nil
	case o.notes:
		changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
		if err != nil {
			return err
		}
		section, err := notes(string(changelog), modules[0].version)
		fmt.Fprint(out, section)
		return err
	case o.root != "":
		return packOne(modules[0], o.root, o.pack)
	case o.pack != "":
		return packAll(modules, o.pack)
	default:
		return prepare(out, root, modules)
	}
}

// prepare changes the files for a release, and prints the tags.
func prepare(out io.Writer, root string, modules []*released) error {
	if dirty, err := git("status", "--porcelain"); err != nil || dirty != "" {
		return errors.Join(err, fmt.Errorf("the tree is not clean:\n%s", dirty))
	}
	if err := setVersions(modules); err != nil {
		return err
	}
	if err := dateChangelog(filepath.Join(root, "CHANGELOG.md"), modules[0].version, time.Now()); err != nil {
		return err
	}
	writeCommands(out, modules)
	return nil
}

// writeCommands prints what is left to a person. Each tag is pushed after those of the modules that its own requires.
func writeCommands(out io.Writer, modules []*released) {
	fmt.Fprintln(out, "Look at git diff, run .ci/run, and then these, on the main branch:")
	fmt.Fprintf(out, "git commit -a -m 'release: %s' && git push origin main\n", modules[0].version)
	fmt.Fprintln(out, "go run ./tools/release -notes >/tmp/notes")
	for _, m := range modules {
		fmt.Fprintf(out, "git tag -a --cleanup=verbatim -F /tmp/notes %[1]s && git push origin %[1]s\n", m.tag())
	}
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
