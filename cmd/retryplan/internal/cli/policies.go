package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
)

// named is a policy under the name by which the output calls it.
type named struct {
	name   string
	policy retry.Policy
	from   string  // what would be given to mean this policy alone: "email@policies.json"
	share  float64 // of a mix
	others []named // of the same fleet
	place
}

// policyFlags are the flags that choose and change a policy.
type policyFlags struct {
	preset  string
	changes *pflag.FlagSet
	own     retry.Policy // what the flags say
	jitter  retryconf.Jitter
}

func (f *policyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.preset, "preset", "", "start from inline, aggressive, standard, patient, cautious or delivery")
	f.change(flags)
}

// change adds the flags that change a policy.
func (f *policyFlags) change(to *pflag.FlagSet) {
	p, flags := &f.own, pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	duration := func(to *time.Duration, name, usage string) {
		textVar(flags, (*retryconf.Duration)(to), "duration", name, usage)
	}
	textVar(flags, (*retryconf.Attempts)(&p.MaxAttempts), "number", "attempts", "attempts in all, the first included, or unlimited")
	textVar(flags, (*retryconf.Mode)(&p.Mode), "mode", "mode", "exponential, linear, fixed or list")
	duration(&p.Base, "base", "the first wait")
	textVar(flags, (*retryconf.Number)(&p.Factor), "number", "factor", "the growth of the waits")
	duration(&p.Cap, "cap", "the longest wait")
	flags.Var(&funcFlag{set: func(text string) error {
		var s retryconf.Spec
		if err := s.SetDelays(text); err != nil {
			return err
		}
		list, err := s.Policy()
		p.Delays = list.Delays
		return err
	}, kind: "list"}, "delays", "the waits of a list: 1m,30m,3h; the last one repeats")
	textVar(flags, &f.jitter, "jitter", "jitter", "none, full, equal, ratio or decorrelated")
	textVar(flags, (*retryconf.Number)(&p.JitterRatio), "number", "jitter-ratio", "the half-width of ratio jitter, in (0,1]")
	duration(&p.AttemptTimeout, "attempt-timeout", "the longest that an attempt may take")
	duration(&p.TTL, "ttl", "attempts start within it of the first one")
	duration(&p.MaxHint, "max-hint", "the longest Retry-After that is obeyed")
	duration(&p.ResetAfter, "reset-after", "an attempt that lasts so long starts attempts and waits anew")
	flags.BoolVar(&p.Disabled, "disabled", false, "one attempt, no retries")
	f.changes = flags
	to.AddFlagSet(flags)
}

// changed reports whether any flag changes the policy.
func (f *policyFlags) changed() (any bool) {
	f.changes.VisitAll(func(flag *pflag.Flag) { any = any || flag.Changed })
	return any
}

// apply returns p with what the flags give in place of its own, as Policy.Or combines two policies: a list has no base.
// A new list has its own number of attempts unless --attempts is given; what was a list keeps its number.
func (f *policyFlags) apply(a *app, p retry.Policy) (retry.Policy, error) {
	if !f.changed() {
		return p, nil
	}
	before := p.Effective()
	if f.own.Delays != nil {
		p.MaxAttempts = 0
	}
	if f.jitter != 0 {
		jitter, _ := retryconf.Spec{Jitter: f.jitter}.Policy()
		f.own.Jitter, p.Jitter = jitter.Jitter, retry.NoJitter
	}
	if a.given("disabled") {
		p.Disabled = false
	}
	changed := f.own.Or(p)
	if before.Mode == retry.List && changed.Delays == nil {
		changed.MaxAttempts = cmp.Or(changed.MaxAttempts, before.MaxAttempts)
	}
	if err := changed.Validate(); err != nil {
		return p, misusef("the flags make a policy that is not valid: %w", a.blame(err))
	}
	return changed, nil
}

// policies returns the policies that the arguments and the flags mean, one at least.
func (a *app) policies(f *policyFlags, args []string) (found []named, err error) {
	if a.given("preset") {
		if len(args) > 0 {
			return nil, misusef("--preset %s and %s are two policies; give one, or compare them", f.preset, args[0])
		}
		args = []string{presetPrefix + f.preset}
	}
	switch {
	case len(args) > 0:
	case f.changed():
		found = []named{{name: "policy"}}
	default:
		found = []named{{name: "default policy"}}
	}
	elsewhere := func(arg string) bool { return arg != "-" && !strings.HasSuffix(arg, "@-") }
	if len(slices.DeleteFunc(slices.Clone(args), elsewhere)) > 1 {
		return nil, misusef("standard input can be read once")
	}
	for _, arg := range args {
		some, err := a.read(arg)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	from, several := map[string]string{}, map[string]bool{} // policies of one name from different places
	for _, n := range found {
		first, ok := from[n.name]
		several[n.name] = several[n.name] || ok && first != n.from
		from[n.name] = n.from
	}
	for i, n := range found {
		if several[n.name] {
			found[i].name = n.from
		}
		found[i].name = wire.OneLine(found[i].name) // it is shown, and looked up no more
		if found[i].policy, err = f.apply(a, n.policy); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// presetPrefix begins an argument that is a preset, since a file can have any name.
const presetPrefix = "preset:"

// read returns the policies of an argument.
func (a *app) read(arg string) ([]named, error) {
	if preset, ok := strings.CutPrefix(arg, presetPrefix); ok {
		p, err := retryconf.Spec{Extends: preset}.Policy()
		if err != nil || preset == "" {
			return nil, misusef("preset %q is not one of inline, aggressive, standard, patient, cautious, delivery", preset)
		}
		p.Name = cmp.Or(p.Name, preset)
		return []named{{name: preset, policy: p, from: arg}}, nil
	}
	file, name := arg, ""
	data, err := a.contents(file)
	missing := err
	for i := 0; i < len(arg) && errors.Is(err, os.ErrNotExist); i++ { // both names and files can have an @
		if arg[i] != '@' {
			continue
		}
		if data, err = a.contents(arg[i+1:]); name == "" {
			missing = err
		}
		name, file = arg[:i], arg[i+1:]
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	found, err := parse(data, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source(file), err)
	}
	var names []string
	for _, n := range found {
		if n.name == name {
			return []named{n}, nil
		}
		names = append(names, n.name)
	}
	if name != "" {
		return nil, fmt.Errorf("%s: there is no policy %q, but %s", source(file), name, strings.Join(names, ", "))
	}
	return found, nil
}

// limit is how much is read of a document: what a catalog may have, and one byte to see that there is more.
const limit = 1<<20 + 1

func (a *app) contents(file string) ([]byte, error) {
	from := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	if from == nil {
		return nil, errors.New("standard input is closed")
	}
	return io.ReadAll(io.LimitReader(from, limit))
}

// source returns what a document is called in errors.
func source(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// parse reads a document of retryconf: a catalog if it has the keys of one, otherwise one policy, which is called after
// the file if it has no name of its own.
func parse(data []byte, file string) ([]named, error) {
	d, err := readDocument(data)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(d.data, &keys) // retryconf says what is wrong with it
	if keys["policies"] != nil || keys["defaults"] != nil {
		return d.catalog(keys["policies"], file)
	}
	spec, err := retryconf.Parse(d.data, retryconf.Limits{})
	if err != nil {
		return nil, err
	}
	p, err := spec.Policy()
	if err != nil {
		return nil, err
	}
	base := filepath.Base(source(file))
	n := named{name: cmp.Or(p.Name, strings.TrimSuffix(base, filepath.Ext(base))), policy: p, from: file}
	n.place, err = d.place(file, "")
	return []named{n}, err
}

// catalog defines each policy that the document names, since what a program defines is not known here.
func (d document) catalog(policies json.RawMessage, file string) (found []named, err error) {
	var entries map[string]json.RawMessage
	_ = json.Unmarshal(policies, &entries) // Load says what is wrong with it
	if _, ok := entries[""]; ok {
		return nil, errors.New(`policies has an entry whose name is "": a policy of a catalog needs a name`)
	}
	var catalog retryconf.Catalog
	for name := range entries {
		catalog.Define(name, retry.Policy{})
	}
	if err := catalog.Load(bytes.NewReader(d.data)); err != nil {
		return nil, err
	}
	for _, e := range catalog.All() {
		n := named{name: e.Name, policy: e.Policy, from: e.Name + "@" + file}
		if n.place, err = d.place(file, e.Name); err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	if len(found) == 0 {
		return nil, errors.New("the catalog has no policies")
	}
	return found, nil
}
