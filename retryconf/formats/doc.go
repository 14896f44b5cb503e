// Package formats holds tests only. They show that a retryconf.Spec reads the same policy out of YAML (gopkg.in/yaml.v3),
// TOML (BurntSushi/toml), JSON, environment variables and flags, and refuses in each what none of them may let pass. They
// live in a module of their own, so that who imports retryconf gets neither decoder.
package formats
