// Package retryconf reads and writes retry policies as data: in files, environment variables and flags, from operators
// and from tenants, under names that code refers to.
//
//   - [Spec] is the wire form of one policy, with snake_case keys and durations such as "30s". It guesses nothing: a
//     number for a duration, an unknown or repeated key and an explicit 0 are refused, all at once, each with its key
//     and its rule.
//   - [Parse] reads one from outsiders, within [Limits], in bounded time and memory.
//   - [Catalog] holds named policies: [Catalog.Define] them in code, [Catalog.Load] what operators override, all or
//     nothing, while calls are running. [Ref.Policy] returns the policy in force and does not block.
//
// # What stays in code
//
// A policy's functions and its Budget are code: they stay in code, survive a reload and are reported by [FromPolicy]
// rather than dropped.
//
// # Formats
//
// The package imports the standard library only. Its types read and write themselves as text, so that gopkg.in/yaml.v3,
// BurntSushi/toml and flag.TextVar read them without extra code. It watches no files: call Load after a change.
package retryconf
