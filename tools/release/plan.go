package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// verdict says what happens to a module in a release.
type verdict int

const (
	keep   verdict = iota // its tag is there, or it has nothing to release
	tagNow                // its tag is to come
	refuse                // no tag is made until this is mended
)

func (v verdict) String() string { return [...]string{"keep", "tag", "REFUSE"}[v] }

// step is what happens to one module, and why.
type step struct {
	*released
	verdict verdict
	reason  string
}

// repository is a clone of this repository, whose commit is to be released to a remote.
type repository struct{ dir, remote string }

func (r repository) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// plan decides about each module. Its version is to come if the remote has no tag of that version. A half-done release
// goes on: the tags that the remote has are kept.
func (r repository) plan(list []*released) ([]step, error) {
	head, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	remote, err := r.tags("ls-remote", "--tags", r.remote)
	if err != nil {
		return nil, err
	}
	local, err := r.tags("show-ref", "--tags", "--dereference")
	if err != nil {
		local = nil // there is none
	}
	var steps []step
	for _, m := range list {
		s := step{released: m}
		if s.verdict, s.reason, err = r.decide(m, head, remote, local); err != nil {
			return nil, err
		}
		if s.verdict == tagNow {
			if missing := s.missing(steps, remote); missing != "" {
				s.verdict, s.reason = refuse, "it requires "+missing+", which is neither tagged nor to come"
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// tags returns the commit of each tag that a command of git lists.
func (r repository) tags(args ...string) (map[string]string, error) {
	out, err := r.git(args...)
	if err != nil {
		return nil, err
	}
	commits := map[string]string{}
	for line := range strings.Lines(out) {
		commit, ref, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		tag := strings.TrimPrefix(ref, "refs/tags/")
		// The commit of an annotated tag follows the tag itself.
		commits[strings.TrimSuffix(tag, "^{}")] = commit
	}
	return commits, nil
}

func (r repository) decide(m *released, head string, remote, local map[string]string) (verdict, string, error) {
	switch at, there := remote[m.tag()]; {
	case at == head:
		return keep, "the remote has the tag at this commit", nil
	case there && !r.hasAncestor(at):
		return refuse, "the remote has the tag at " + at[:8] + ", which this commit does not descend from", nil
	case there:
		changed, err := r.changed(m, at)
		if changed {
			return keep, "released; what has changed since waits for another version", err
		}
		return keep, "released, unchanged since", err
	}
	if at, there := local[m.tag()]; there && at != head {
		return refuse, "a tag of this clone that the remote does not have is at " + at[:8], nil
	}
	last := lastTag(m, remote)
	if last == "" {
		return tagNow, "the first release", nil
	}
	if released := path.Base(last); semver.Compare(m.version, released) < 0 {
		return refuse, "the remote has " + released + " already", nil
	}
	if !r.hasAncestor(remote[last]) {
		return refuse, "the remote has " + last + " at " + remote[last][:8] + ", which this commit does not descend from", nil
	}
	changed, err := r.changed(m, remote[last])
	if !changed {
		return keep, "nothing has changed since " + last, err
	}
	return tagNow, "changed since " + last, err
}

func (r repository) hasAncestor(commit string) bool {
	_, err := r.git("merge-base", "--is-ancestor", commit, "HEAD")
	return err == nil
}

// changed reports whether a file of the module differs from the one in the commit. Modules in folders below are not
// parts of it.
func (r repository) changed(m *released, commit string) (bool, error) {
	files, err := r.git("diff", "--name-only", commit, "HEAD", "--", m.folder)
	if err != nil || files == "" {
		return false, err
	}
	nested, err := r.git("ls-files", "go.mod", "**/go.mod")
	if err != nil {
		return false, err
	}
	for file := range strings.Lines(files) {
		if owner(strings.Fields(nested), strings.TrimSpace(file)) == m.folder {
			return true, nil
		}
	}
	return false, nil
}

// owner returns the folder of the module that the file is part of.
func owner(goMods []string, file string) string {
	dir := path.Dir(file)
	for dir != "." && !slices.Contains(goMods, dir+"/go.mod") {
		dir = path.Dir(dir)
	}
	return dir
}

// lastTag returns the tag with the highest version of the module, or "".
func lastTag(m *released, tags map[string]string) (last string) {
	for tag := range tags {
		folder, version := path.Split(tag)
		if path.Clean(folder) != m.folder || !semver.IsValid(version) {
			continue
		}
		if last == "" || semver.Compare(version, path.Base(last)) > 0 {
			last = tag
		}
	}
	return last
}

// missing returns the tag of a requirement that is neither at the remote nor among those to come, or "".
func (s step) missing(before []step, remote map[string]string) string {
	for _, r := range s.mod.Require {
		if !ours(r.Mod.Path) {
			continue
		}
		folder := strings.TrimPrefix(strings.TrimPrefix(r.Mod.Path, rootPath), "/")
		required := released{folder: folder, version: r.Mod.Version}
		if folder == "" {
			required.folder = "."
		}
		_, tagged := remote[required.tag()]
		toCome := slices.ContainsFunc(before, func(b step) bool { return b.verdict == tagNow && b.tag() == required.tag() })
		if !tagged && !toCome {
			return required.tag()
		}
	}
	return ""
}

// toCome returns the tags that are to be made.
func toCome(steps []step) (tags []string) {
	for _, s := range steps {
		if s.verdict == tagNow {
			tags = append(tags, s.tag())
		}
	}
	return tags
}

// check returns an error that names each module for which the release is refused.
func check(steps []step) error {
	var refused []string
	for _, s := range steps {
		if s.verdict == refuse {
			refused = append(refused, fmt.Sprintf("%s: %s", s.tag(), s.reason))
		}
	}
	if refused == nil {
		return nil
	}
	return fmt.Errorf("refused, and no tag was made: %s", strings.Join(refused, "; "))
}

func writePlan(out io.Writer, steps []step) {
	for _, s := range steps {
		fmt.Fprintf(out, "%-6s  %-32s  %s\n", s.verdict, s.tag(), s.reason)
	}
}

// push makes the tags to come and pushes them: all of them or none. A tag that an interrupted run has made at this
// commit is used.
func (r repository) push(steps []step, message string) error {
	if err := check(steps); err != nil {
		return err
	}
	tags := toCome(steps)
	if len(tags) == 0 {
		return nil
	}
	args := []string{"push", "--atomic", r.remote}
	for _, tag := range tags {
		if _, err := r.git("rev-parse", "--verify", "--quiet", "refs/tags/"+tag); err != nil {
			if _, err := r.git("tag", "-a", "--cleanup=verbatim", "-m", message, tag); err != nil {
				return err
			}
		}
		args = append(args, "refs/tags/"+tag)
	}
	_, err := r.git(args...)
	return err
}
