// Package formats holds tests only. They show that a retryconf.Spec reads the same policy from YAML (gopkg.in/yaml.v3),
// TOML (BurntSushi/toml), JSON, environment variables and flags, and is equally strict in each. They are in a separate
// module, so importers of retryconf do not get the decoders.
package formats
