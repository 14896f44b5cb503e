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

// configFile is looked up in the working directory and those above it.
const configFile = ".retryplan.yaml"

// config is what a repository says once, for lint and certify.
type config struct {
	Documents []string          `yaml:"documents"` // beside the file; used if the command line names no policy
	Ignore    map[string]string `yaml:"ignore"`    // CODE or POLICY:CODE, and the reason
	Flags     map[string]any    `yaml:",inline"`   // the others, by their names without hyphens in front
}

// configFlag adds the flag of the configuration.
func configFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "config", "", "read this `file` rather than the first "+configFile+" in the directories from here upwards; none reads none")
}

// configure sets the flags that the command line does not, and returns the policies that are meant. Keys that are flags
// of other commands are for them.
func (a *app) configure(cmd *cobra.Command, file string, args []string) (config, []string, error) {
	var c config
	file, err := findConfig(file)
	if err != nil || file == "" {
		return c, args, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return c, args, err
	}
	bad := func(err error) (config, []string, error) { return c, args, fmt.Errorf("%s: %w", file, err) }
	if err := yaml.Unmarshal(data, &c); err != nil {
		return bad(err)
	}
	for which, reason := range c.Ignore {
		if err := checkIgnored(which[strings.LastIndex(which, ":")+1:], reason); err != nil {
			return bad(fmt.Errorf("ignore: %w", err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		value := c.Flags[name]
		flag := cmd.Flags().Lookup(name)
		switch {
		case flag == nil && !a.isFlag(cmd.Root(), name), name == "config":
			return bad(fmt.Errorf("%s is none of documents and ignore, and no flag of lint or certify", name))
		case flag == nil || flag.Changed:
			continue
		}
		values, many := value.([]any)
		if !many {
			values = []any{value}
		}
		for _, value := range values {
			if err := cmd.Flags().Set(name, fmt.Sprint(value)); err != nil {
				return bad(fmt.Errorf("%s: %w", name, flagError(err)))
			}
		}
	}
	if len(args) == 0 && !cmd.Flags().Changed("preset") {
		for _, name := range c.Documents {
			args = append(args, filepath.Join(filepath.Dir(file), name))
		}
	}
	return c, args, nil
}

// isFlag reports whether a name is a flag of the commands that have a configuration.
func (a *app) isFlag(root *cobra.Command, name string) bool {
	for _, cmd := range root.Commands() {
		if cmd.Flags().Lookup("config") != nil && cmd.Flags().Lookup(name) != nil {
			return true
		}
	}
	return false
}

// findConfig returns the configuration that is meant, empty for none.
func findConfig(file string) (string, error) {
	switch file {
	case "":
	case "none":
		return "", nil
	default:
		return file, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	from := dir
	for {
		path := filepath.Join(dir, configFile)
		if _, err := os.Stat(path); err == nil {
			return filepath.Rel(from, path) // as reports name files
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil
		}
		dir = up
	}
}
