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
		if err := checkIgnored(which, reason); err != nil {
			return bad(fmt.Errorf("ignore: %w", err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		value := c.Flags[name]
		known := slices.ContainsFunc(cmd.Root().Commands(), func(c *cobra.Command) bool {
			return c.Flags().Lookup("config") != nil && c.Flags().Lookup(name) != nil
		})
		switch flag := cmd.Flags().Lookup(name); {
		case !known || name == "config":
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
				return c, args, misusef("%s: %s: %w", file, name, flagError(err))
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

// findConfig returns the configuration that is meant, empty for none.
func findConfig(file string) (string, error) {
	switch file {
	case "":
	case "none":
		return "", nil
	default:
		return file, nil
	}
	from, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, configFile)
		_, err := os.Stat(path)
		switch {
		case err == nil:
			return filepath.Rel(from, path) // as reports name files
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		case dir == filepath.Dir(dir):
			return "", nil
		}
	}
}
