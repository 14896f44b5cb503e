// Package formats holds tests only. They show that a retryconf.Spec reads the same policy out of YAML
// (gopkg.in/yaml.v3), TOML (BurntSushi/toml), JSON, environment variables and flags, and is equally strict in each.
// They have a module of their own, so that importers of retryconf get neither decoder.
package formats
