package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configFile is the name of the configuration in the working directory or one above it.
const configFile = ".retryplan.yaml"

// config is what a repository configures for lint and certify.
type config struct {
	Documents []string          `yaml:"documents"` // relative to the file; used if the command line names no policy
	Ignore    map[string]string `yaml:"ignore"`    // the reason for each CODE or POLICY:CODE
	Flags     map[string]any    `yaml:",inline"`   // values of flags, which the command line overrides
}

func (a *app) configFlag(flags *pflag.FlagSet) {
	flags.StringVar(&a.config, "config", "", "read this `file` rather than the first "+configFile+" in the directories up to the repository's; none reads none")
}

// configure sets the flags that the command line does not, and returns the findings to ignore and the policies. It
// skips flags of the other command that reads the file.
func (a *app) configure(cmd *cobra.Command, args []string) (ignored map[string]string, policies []string, err error) {
	ignored = map[string]string{}
	file, err := findConfig(a.config)
	if err != nil || file == "" {
		return ignored, args, err
	}
	if err := regular(os.Stat(file)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	data, err := readFile(file, maxDocument)
	if err != nil {
		return nil, nil, err
	}
	var c config
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	for which, reason := range c.Ignore {
		if err := checkIgnored(which, reason); err != nil {
			return nil, nil, fmt.Errorf("%s: ignore: %w", file, err)
		}
		ignored[which] = reason
	}
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		known := slices.ContainsFunc(cmd.Root().Commands(), func(c *cobra.Command) bool {
			return c.Flags().Lookup("config") != nil && c.Flags().Lookup(name) != nil
		})
		if !known || name == "config" || name == "plot" { // a repository does not say where to write
			return nil, nil, fmt.Errorf("%s: %s is neither documents, ignore, nor a flag of lint or certify", file, name)
		}
		if cmd.Flags().Lookup(name) == nil || cmd.Flags().Changed(name) {
			continue
		}
		values, many := c.Flags[name].([]any)
		if !many {
			values = []any{c.Flags[name]}
		}
		for _, value := range values {
			if name == "from" {
				policy, metrics, ok := strings.Cut(fmt.Sprint(value), "@")
				if !ok {
					policy, metrics = "", policy
				}
				if metrics, err = local(file, metrics); err != nil {
					return nil, nil, err
				}
				value = strings.TrimPrefix(policy+"@"+metrics, "@")
			}
			if err := cmd.Flags().Set(name, fmt.Sprint(value)); err != nil {
				return nil, nil, misusef("%s: %s: %w", file, name, err)
			}
		}
	}
	if len(args) == 0 && !cmd.Flags().Changed("preset") {
		for _, name := range c.Documents {
			if name, err = local(file, name); err != nil {
				return nil, nil, err
			}
			args = append(args, name)
		}
	}
	a.remark("using %s", file)
	return ignored, args, nil
}

// local returns the path of a file that a configuration names: a regular one in the configuration's own directory. Who
// checks a repository out did not write its configuration.
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

// findConfig returns the name of the configuration, or an empty one if there is none. It looks in the directories up to
// that of the repository, or in the working directory alone if there is no repository.
func findConfig(file string) (string, error) {
	if file != "" {
		if file == "none" {
			file = ""
		}
		return file, nil
	}
	from, err := os.Getwd()
	if err != nil {
		return "", err
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	found := ""
	for dir := from; ; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, configFile); found == "" && exists(path) {
			found = path
		}
		repository := exists(filepath.Join(dir, ".git"))
		if found != "" && (repository || filepath.Dir(found) == from) {
			return filepath.Rel(from, found) // reports name files relative to the working directory
		}
		if repository || dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}
