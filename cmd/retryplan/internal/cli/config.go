package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configFile is the name of the configuration.
const configFile = ".retryplan.yaml"

// config is what a repository configures for lint and simulate.
type config struct {
	Documents []string          `yaml:"documents"` // relative to the file; used if the command line names no policy
	Ignore    map[string]string `yaml:"ignore"`    // the reason for each CODE or POLICY:CODE
	Flags     map[string]any    `yaml:",inline"`   // values of flags, which the command line overrides
}

func (a *app) configFlag(flags *pflag.FlagSet) {
	flags.StringVar(&a.config, "config", "", "read this `file` rather than "+configFile+" in the working directory or beside .git; none reads none")
}

// configure sets the flags that the command line does not, the documents, and the findings to ignore. It skips flags of
// the other command that reads the file.
func (a *app) configure(cmd *cobra.Command) error {
	file, err := findConfig(a.config)
	if err != nil || file == "" {
		return err
	}
	if err := regular(os.Stat(file)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	data, err := readFile(file, maxDocument)
	if err != nil {
		return err
	}
	var c config
	if err := yaml.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for which, reason := range c.Ignore {
		if err := checkIgnored(which, reason); err != nil {
			return fmt.Errorf("%s: ignore: %w", file, err)
		}
	}
	a.ignored = c.Ignore
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		known := slices.ContainsFunc(cmd.Root().Commands(), func(c *cobra.Command) bool {
			return c.Flags().Lookup("config") != nil && c.Flags().Lookup(name) != nil
		})
		// Who checks a repository out did not write it: it does not say where to read or write.
		if !known || slices.Contains([]string{"config", "plot", "from"}, name) {
			return fmt.Errorf("%s: %s is neither documents, ignore, nor a flag of lint or simulate", file, name)
		}
		if cmd.Flags().Lookup(name) == nil || cmd.Flags().Changed(name) {
			continue
		}
		if err := cmd.Flags().Set(name, fmt.Sprint(c.Flags[name])); err != nil {
			return misusef("%s: %s: %w", file, name, err)
		}
	}
	for _, name := range c.Documents {
		if name, err = local(file, name); err != nil {
			return err
		}
		a.files = append(a.files, name)
	}
	a.remark("using %s", file)
	return nil
}

// local returns the path of a file that a configuration names: a regular one in the configuration's own directory.
func local(config, name string) (string, error) {
	dir := filepath.Dir(config)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := regular(root.Stat(name)); err != nil {
		return "", fmt.Errorf("%s: %s: %w", config, name, err)
	}
	return filepath.Join(dir, name), nil
}

// regular refuses what is not a regular file: a device may have no end, and a pipe makes a reader wait.
func regular(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok { // the caller names the file
		err = pathErr.Err
	}
	return err
}

// findConfig returns the name of the configuration, or an empty one if there is none: the one of the working directory, or
// else the one of the repository's.
func findConfig(file string) (string, error) {
	if file == "none" {
		return "", nil
	} else if file != "" {
		return file, nil
	}
	from, err := os.Getwd()
	if err != nil {
		return "", err
	}
	exists := func(path ...string) bool {
		_, err := os.Lstat(filepath.Join(path...))
		return err == nil
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		repository := exists(dir, ".git")
		switch {
		case exists(dir, configFile) && (dir == from || repository):
			return filepath.Rel(from, filepath.Join(dir, configFile)) // reports name files relative to the working directory
		case repository || dir == filepath.Dir(dir):
			return "", nil
		}
	}
}
