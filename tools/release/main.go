// Release releases this repository's modules, each under its own tag. versions.txt has the version of each: a version
// whose tag the remote does not have is to come.
//
//	go run ./tools/release              prints what a release of this commit would do with each module, and why
//	go run ./tools/release -prepare     dates the changelog
//	go run ./tools/release -push        makes the tags to come and pushes them together; first it checks all of them
//	go run ./tools/release -tags        lists the tags to come alone
//	go run ./tools/release -notes       prints the changelog's section of the release, which is the tags' message
//	go run ./tools/release -pack DIR    packs every module into DIR, to be served as GOPROXY=file://DIR
//	go run ./tools/release -api         lists the exported API
//
// A release that was interrupted goes on with the same command.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.prepare, "prepare", false, "date the changelog")
	flag.BoolVar(&o.push, "push", false, "make the tags to come and push them")
	flag.BoolVar(&o.tags, "tags", false, "list the tags to come")
	flag.BoolVar(&o.notes, "notes", false, "print the changelog's section")
	flag.BoolVar(&o.api, "api", false, "list the exported API")
	flag.StringVar(&o.pack, "pack", "", "pack every module into this `folder`")
	flag.StringVar(&o.root, "root", "", "with -pack: pack the root module alone, at this `version`")
	flag.StringVar(&o.remote, "remote", "origin", "the `remote` that has the tags")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	prepare, push, tags, notes, api bool
	pack, root, remote              string
}

func run(out io.Writer, o options) error {
	here := repository{".", o.remote}
	root, err := here.git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	here.dir = root
	modules, err := readModules(root)
	switch {
	case err != nil:
		return err
	case o.api:
		return writeAPI(out, modules)
	case o.root != "":
		return packFolder(modules[0], o.root, o.pack)
	case o.pack != "":
		return here.packAll(modules, o.pack)
	default:
		return here.release(out, modules, o)
	}
}

// release prints the plan, or carries out a part of it.
func (r repository) release(out io.Writer, modules []*released, o options) error {
	steps, err := r.plan(modules)
	if err != nil {
		return err
	}
	tags := toCome(steps)
	changelog := filepath.Join(r.dir, "CHANGELOG.md")
	switch {
	case o.tags:
		for _, tag := range tags {
			fmt.Fprintln(out, tag)
		}
		return check(steps)
	case len(tags) == 0:
		writePlan(out, steps)
		return check(steps)
	case o.notes:
		section, err := readNotes(changelog, title(tags))
		fmt.Fprint(out, section)
		return err
	case o.prepare:
		if err := r.clean(); err != nil {
			return err
		}
		return errors.Join(check(steps), dateChangelog(changelog, title(tags), time.Now()))
	case o.push:
		writePlan(out, steps)
		section, err := readNotes(changelog, title(tags))
		if err = errors.Join(err, r.clean()); err != nil {
			return err
		}
		return r.push(steps, section)
	default:
		writePlan(out, steps)
		return check(steps)
	}
}

// clean returns an error if the clone has changes that are not committed.
func (r repository) clean() error {
	dirty, err := r.git("status", "--porcelain")
	if dirty != "" {
		return fmt.Errorf("the tree is not clean:\n%s", dirty)
	}
	return err
}
