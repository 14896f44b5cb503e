package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clone is a small repository of six modules, with a bare remote that it pushes to.
type clone struct {
	repository
	t *testing.T
}

// The modules of a clone, in the order of versions.txt, with the modules of ours that each requires.
var folders = []struct {
	name     string
	requires []string
}{
	{".", nil}, {"job", []string{"."}}, {"contrib", []string{"."}}, {"contrib/grpc", []string{".", "contrib"}},
	{"contrib/river", []string{".", "job"}}, {"cmd/jobs", []string{"contrib/river"}},
}

func newClone(t *testing.T) *clone {
	for key, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
	} {
		t.Setenv(key, value)
	}
	c := &clone{repository{t.TempDir(), filepath.Join(t.TempDir(), "remote.git")}, t}
	command(t, c.dir, "git", "init", "-q", "--bare", c.remote)
	command(t, c.dir, "git", "init", "-q", "-b", "main")
	versions := map[string]string{}
	for _, f := range folders {
		versions[f.name] = "v0.1.0"
		c.require(f.name, "v0.1.0", f.requires...)
		c.write(filepath.Join(f.name, "code.go"), "package x\n")
	}
	c.commit(versions, "first")
	return c
}

func (c *clone) write(file, text string) {
	file = filepath.Join(c.dir, file)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(c.t, os.WriteFile(file, []byte(text), 0o600))
}

func modulePath(folder string) string { return strings.TrimSuffix(rootPath+"/"+folder, "/.") }

// require makes the module in the folder require the version of other modules.
func (c *clone) require(folder, version string, others ...string) {
	text := "module " + modulePath(folder) + "\n"
	for _, other := range others {
		text += fmt.Sprintf("\nrequire %s %s\n", modulePath(other), version)
	}
	c.write(filepath.Join(folder, "go.mod"), text)
}

// commit commits everything, with the given versions in versions.txt.
func (c *clone) commit(versions map[string]string, message string) {
	var text strings.Builder
	for _, f := range folders {
		fmt.Fprintln(&text, f.name, versions[f.name])
	}
	c.write(versionsFile, text.String())
	command(c.t, c.dir, "git", "add", "-A")
	command(c.t, c.dir, "git", "commit", "-qm", message)
	command(c.t, c.dir, "git", "push", "-q", c.remote, "main")
}

func (c *clone) plan() []step {
	list, err := readModules(c.dir)
	require.NoError(c.t, err)
	steps, err := c.repository.plan(list)
	require.NoError(c.t, err)
	return steps
}

// release pushes what is to come, and returns the tags that are new at the remote.
func (c *clone) release() ([]string, error) {
	before, err := c.tags("ls-remote", "--tags", c.remote)
	require.NoError(c.t, err)
	failed := c.push(c.plan(), "notes")
	after, err := c.tags("ls-remote", "--tags", c.remote)
	require.NoError(c.t, err)
	var made []string
	for _, s := range c.plan() {
		_, was := before[s.tag()]
		if _, is := after[s.tag()]; is && !was {
			made = append(made, s.tag())
		}
	}
	return made, failed
}

var all = []string{"v0.1.0", "job/v0.1.0", "contrib/v0.1.0", "contrib/grpc/v0.1.0", "contrib/river/v0.1.0", "cmd/jobs/v0.1.0"}

func versions(changed ...string) map[string]string {
	v := map[string]string{}
	for _, f := range folders {
		v[f.name] = "v0.1.0"
	}
	for i := 0; i < len(changed); i += 2 {
		v[changed[i]] = changed[i+1]
	}
	return v
}

func TestTheFirstReleaseTagsAllModulesOnce(t *testing.T) {
	c := newClone(t)
	var out strings.Builder
	writePlan(&out, c.plan()[:2])
	require.Equal(t, "tag     v0.1.0                            the first release\n"+
		"tag     job/v0.1.0                        the first release\n", out.String())
	require.Empty(t, command(t, c.dir, "git", "tag", "--list"), "a plan makes no tag")
	made, err := c.release()
	require.NoError(t, err)
	require.Equal(t, all, made)

	made, err = c.release()
	require.NoError(t, err)
	require.Empty(t, made)
	for _, s := range c.plan() {
		require.Equal(t, []any{keep, "the remote has the tag at this commit"}, []any{s.verdict, s.reason})
	}
}

func TestTheRootIsReleasedAlone(t *testing.T) {
	c := newClone(t)
	_, err := c.release()
	require.NoError(t, err)
	c.write("code.go", "package x // better\n")
	c.write("contrib/grpc/code.go", "package x // not ready\n")
	c.commit(versions(".", "v0.1.1"), "root: better")
	made, err := c.release()
	require.NoError(t, err)
	require.Equal(t, []string{"v0.1.1"}, made)
	reasons := map[string]string{}
	for _, s := range c.plan() {
		reasons[s.folder] = s.reason
	}
	require.Equal(t, "released, unchanged since", reasons["contrib"])
	require.Equal(t, "released; what has changed since waits for another version", reasons["contrib/grpc"])
}

func TestAnAdapterIsReleasedAloneAndRequiresWhatIsReleased(t *testing.T) {
	c := newClone(t)
	_, err := c.release()
	require.NoError(t, err)
	c.write("contrib/grpc/code.go", "package x // better\n")
	c.commit(versions("contrib/grpc", "v0.1.1"), "grpc: better")
	made, err := c.release()
	require.NoError(t, err)
	require.Equal(t, []string{"contrib/grpc/v0.1.1"}, made)
}

func TestAReleaseThatDiedAfterTheFifthTagGoesOn(t *testing.T) {
	c := newClone(t)
	for _, tag := range all[:5] {
		command(t, c.dir, "git", "tag", "-a", "-m", "notes", tag)
		command(t, c.dir, "git", "push", "-q", c.remote, tag)
	}
	made, err := c.release()
	require.NoError(t, err)
	require.Equal(t, all[5:], made)
}

func TestAPushThatTheRemoteRefusesLeavesNoTagThere(t *testing.T) {
	c := newClone(t)
	hook := filepath.Join(c.remote, "hooks", "update")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ntest \"$1\" != refs/tags/"+all[4]+"\n"), 0o700))
	made, err := c.release()
	require.Error(t, err)
	require.Empty(t, made)
	require.NoError(t, os.Remove(hook))
	made, err = c.release()
	require.NoError(t, err)
	require.Equal(t, all, made, "with the tags that the clone has from the first try")
}

func TestWhatIsRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(c *clone)
		want   string
	}{
		{"a requirement whose tag is neither there nor to come", func(c *clone) {
			c.write("code.go", "package x // better\n")
			c.require("job", "v0.1.1", ".")
			c.commit(versions(".", "v0.1.2", "job", "v0.1.1"), "job: use what is new")
		}, "job/v0.1.1: it requires v0.1.1, which is neither tagged nor to come"},
		{"a version below the released one", func(c *clone) {
			c.write("cmd/jobs/code.go", "package x // better\n")
			c.commit(versions("cmd/jobs", "v0.0.9"), "jobs: better")
		}, "cmd/jobs/v0.0.9: the remote has v0.1.0 already"},
		{"a tag of this clone alone, at another commit", func(c *clone) {
			command(c.t, c.dir, "git", "tag", "job/v0.1.1")
			c.write("job/code.go", "package x // better\n")
			c.commit(versions("job", "v0.1.1"), "job: better")
		}, "job/v0.1.1: a tag of this clone that the remote does not have is at "},
		{"a tag of the remote at a commit that this one does not descend from", func(c *clone) {
			command(c.t, c.dir, "git", "checkout", "-q", "--orphan", "other")
			c.write("job/code.go", "package x // other\n")
			c.commit(versions(), "other")
		}, "v0.1.0: the remote has the tag at "},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newClone(t)
			_, err := c.release()
			require.NoError(t, err)
			c.t = t
			row.change(c)
			made, err := c.release()
			require.ErrorContains(t, err, "refused, and no tag was made: ")
			require.ErrorContains(t, err, row.want)
			require.Empty(t, made)
		})
	}
}

func TestAVersionWithoutAChangeIsNotTagged(t *testing.T) {
	c := newClone(t)
	_, err := c.release()
	require.NoError(t, err)
	c.write("contrib/grpc/code.go", "package x // of a module below contrib\n")
	c.commit(versions("contrib", "v0.1.1"), "contrib: nothing")
	made, err := c.release()
	require.NoError(t, err)
	require.Empty(t, made)
	require.Equal(t, "nothing has changed since contrib/v0.1.0", c.plan()[2].reason)
}

func TestAReleasedModuleIsPackedAsItWasReleased(t *testing.T) {
	c := newClone(t)
	_, err := c.release()
	require.NoError(t, err)
	c.require("contrib", "v0.1.1", ".")
	c.commit(versions(".", "v0.1.1"), "contrib: use what is new")
	list, err := readModules(c.dir)
	require.NoError(t, err)
	proxy := t.TempDir()
	require.NoError(t, c.packAll(list, proxy))
	mod, err := os.ReadFile(filepath.Join(proxy, rootPath, "contrib/@v/v0.1.0.mod"))
	require.NoError(t, err)
	require.Equal(t, "module github.com/retrygo/retry/contrib\n\nrequire github.com/retrygo/retry v0.1.0\n", string(mod))
}
