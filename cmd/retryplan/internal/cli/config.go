package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	flags.StringVar(&a.config, "config", "", "read this `file` rather than the first "+configFile+" in the directories from here upwards; none reads none")
}

// configure sets the flags that the command line does not, and returns the findings to ignore and the policies. It
// skips flags of the other command that reads the file.
func (a *app) configure(cmd *cobra.Command, args []string) (ignored map[string]string, policies []string, err error) {
	ignored = map[string]string{}
	file, err := findConfig(a.config)
	if err != nil || file == "" {
		return ignored, args, err
	}
	data, err := os.ReadFile(file)
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
		if !known || name == "config" {
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
			if err := cmd.Flags().Set(name, fmt.Sprint(value)); err != nil {
				return nil, nil, misusef("%s: %s: %w", file, name, err)
			}
		}
	}
	if len(args) == 0 && !cmd.Flags().Changed("preset") {
		for _, name := range c.Documents {
			args = append(args, filepath.Join(filepath.Dir(file), name))
		}
	}
	return ignored, args, nil
}

// findConfig returns the name of the configuration, or an empty one if there is none.
func findConfig(file string) (string, error) {
	if file != "" {
		if file == "none" {
			file = ""
		}
		return file, nil
	}
	from, err := os.Getwd()
	for dir := from; err == nil; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, configFile)
		if _, err := os.Stat(path); err == nil {
			return filepath.Rel(from, path) // reports name files relative to the working directory
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", err
}
