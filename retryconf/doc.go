// Package retryconf reads and writes retry policies as data: in files, environment variables and flags, from operators
// and from tenants, under names that code refers to.
//
//   - [Spec] is the wire form of one policy, with snake_case keys and durations such as "30s". It does not guess. It
//     refuses a number for a duration, an unknown or repeated key and an explicit 0, and reports all of them at once,
//     each with its key and its rule.
//   - [Parse] reads a Spec from an untrusted party, within [Limits], in bounded time and memory.
//   - [Catalog] holds named policies. [Catalog.Define] adds one in code, and [Catalog.Load] applies an operator's
//     overrides while calls are running, either all of them or no override at all. [Ref.Policy] returns the current
//     policy and does not block.
//
// A policy that code defines and a file can change while calls are running:
//
//	var catalog retryconf.Catalog
//	search := catalog.Define("search", retry.Inline())
//	if err := catalog.LoadFile("policies.json"); err != nil {
//		return err // nothing has changed
//	}
//	err := retry.Do(ctx, search.Policy(), query)
//
// # What stays in code
//
// A policy's functions and its Budget cannot be data. They survive a reload, and [FromPolicy] reports them rather than
// dropping them.
//
// # Formats
//
// The package imports the standard library only. Its types read and write themselves as text, so that gopkg.in/yaml.v3,
// BurntSushi/toml and flag.TextVar read them without extra code. The package does not watch files. Call Load after a
// change.
//
// This package is of the stable core. Its names are meant for v1.
package retryconf
