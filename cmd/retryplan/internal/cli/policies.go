package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
)

// named is a policy with its name in the output.
type named struct {
	name   string
	policy retry.Policy
	from   string // the argument that stands for this policy alone, such as "email@policies.json"
	place
}

// policyFlags adds the flags that change a policy.
func (a *app) policyFlags(flags *pflag.FlagSet) {
	a.requestFlags(flags)
	textVar(flags, &a.spec.MaxHint, "duration", "max-hint", "longest Retry-After that is honored")
	textVar(flags, &a.spec.ResetAfter, "duration", "reset-after", "duration of an attempt that resets attempts and waits")
}

// requestFlags adds those of policyFlags that matter to requests without hints, as those of a chain are.
func (a *app) requestFlags(flags *pflag.FlagSet) {
	s := &a.spec
	textVar(flags, &s.MaxAttempts, "number", "attempts", "number of attempts, the first included, or unlimited")
	textVar(flags, &s.Mode, "mode", "mode", "exponential, linear, fixed or list")
	textVar(flags, &s.Base, "duration", "base", "first wait")
	textVar(flags, &s.Factor, "number", "factor", "growth of the waits")
	textVar(flags, &s.Cap, "duration", "cap", "longest wait")
	flags.Var(&funcFlag{"list", s.SetDelays}, "delays", "waits of a list, such as 1m,30m,3h; the last one repeats")
	textVar(flags, &s.Jitter, "jitter", "jitter", "none, full, equal, ratio or decorrelated")
	textVar(flags, &s.JitterRatio, "number", "jitter-ratio", "half-width of ratio jitter, in (0,1]")
	textVar(flags, &s.AttemptTimeout, "duration", "attempt-timeout", "longest time that an attempt may take")
	textVar(flags, &s.TTL, "duration", "ttl", "time from the first attempt within which others may start")
}

// changed reports whether flags change policies.
func (a *app) changed() bool { return !reflect.DeepEqual(a.spec, retryconf.Spec{}) }

// apply returns p with the fields that flags give in place of its own, as Spec.Or combines documents. A new list has its
// own number of attempts unless --attempts is given. A list that is replaced keeps its number.
func (a *app) apply(p retry.Policy) (retry.Policy, error) {
	if !a.changed() {
		return p, nil
	}
	own, _ := retryconf.FromPolicy(p) // policies of documents have no code
	if a.spec.Delays != nil {
		own.MaxAttempts = 0
	}
	changed := a.spec.Or(own)
	if own.Delays != nil && changed.Delays == nil {
		changed.MaxAttempts = cmp.Or(changed.MaxAttempts, retryconf.Attempts(p.Effective().MaxAttempts))
	}
	p, err := changed.Policy()
	if err != nil {
		return p, misusef("the flags make a policy that is not valid: %w", err)
	}
	return p, nil
}

// policies returns the policies that the arguments and the flags stand for; for none, the default policy.
func (a *app) policies(args []string) (found []named, err error) {
	if len(args) == 0 {
		found = []named{{name: "default policy"}}
		set(a.changed(), &found[0].name, "policy")
	}
	for _, arg := range args {
		some, err := a.read(arg)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	count := map[string]int{}
	for _, n := range found {
		count[n.name]++
	}
	for i, n := range found {
		if count[n.name] > 1 {
			found[i].name = n.from
		}
		found[i].name = say.OneLine(found[i].name)
		if found[i].policy, err = a.apply(n.policy); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// read returns the policies of an argument.
func (a *app) read(arg string) ([]named, error) {
	if preset, ok := strings.CutPrefix(arg, "preset:"); ok {
		p, err := retryconf.Spec{Extends: preset}.Policy()
		if err != nil || preset == "" {
			return nil, misusef("preset %q is not one of inline, aggressive, standard, patient, cautious, delivery", preset)
		}
		p.Name = cmp.Or(p.Name, preset)
		return []named{{name: preset, policy: p, from: arg}}, nil
	}
	if strings.HasSuffix(arg, "...") || strings.HasSuffix(arg, ".go") {
		return nil, misusef("%s is Go source: retryvet -policy finds policies there", arg)
	}
	file, name := arg, ""
	data, err := a.contents(file)
	if i := strings.LastIndexByte(arg, '@'); i >= 0 && errors.Is(err, fs.ErrNotExist) {
		name, file = arg[:i], arg[i+1:]
		data, err = a.contents(file)
	}
	if err != nil {
		return nil, err
	}
	found, err := parse(data, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source(file), err)
	}
	if name == "" {
		return found, nil
	}
	var names []string
	for _, n := range found {
		if n.name == name {
			return []named{n}, nil
		}
		names = append(names, n.name)
	}
	return nil, fmt.Errorf("%s: there is no policy %q, but %s", source(file), name, strings.Join(names, ", "))
}

func (a *app) contents(file string) ([]byte, error) {
	if file != "-" {
		return readFile(file, maxDocument)
	}
	return io.ReadAll(io.LimitReader(a.Stdin, maxDocument+1)) // retryconf refuses more
}

const (
	maxDocument = 1 << 20
	maxMetrics  = 64 << 20
)

// readFile reads a file of at most so many bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d MiB", name, most>>20)
	}
	return data, err
}

// source returns the name of a document in errors.
func source(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// place is the position of a policy.
type place struct {
	File string
	Line int
}

// placeOf returns the place of a policy of a catalog, or that of the whole document for the name "".
func placeOf(data []byte, file, name string) place {
	if file == "-" {
		return place{}
	}
	key, _ := json.Marshal(name)
	at := regexp.MustCompile(regexp.QuoteMeta(string(key)) + `\s*:`).FindIndex(data)
	if name == "" || at == nil {
		return place{file, 1}
	}
	return place{file, 1 + bytes.Count(data[:at[0]], []byte("\n"))}
}

// parse reads a document of retryconf: a catalog if it has the keys of one, otherwise one policy, which is named after
// the file if it has no name.
func parse(data []byte, file string) ([]named, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin UTF-8 with this mark
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the document is empty")
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(data, &keys) // retryconf reports errors
	if keys["policies"] != nil || keys["defaults"] != nil {
		return catalog(data, keys["policies"], file)
	}
	spec, err := retryconf.Parse(data, retryconf.Spec{}, retryconf.Limits{})
	if err != nil {
		return nil, err
	}
	p, err := spec.Policy()
	if err != nil {
		return nil, err
	}
	base := filepath.Base(source(file))
	name := cmp.Or(p.Name, strings.TrimSuffix(base, filepath.Ext(base)))
	return []named{{name, p, file, placeOf(data, file, "")}}, nil
}

// catalog defines each policy that the document names, since the program that defines them is not known.
func catalog(data []byte, policies json.RawMessage, file string) (found []named, err error) {
	var entries map[string]json.RawMessage
	_ = json.Unmarshal(policies, &entries) // Load reports errors
	if _, ok := entries[""]; ok {
		return nil, errors.New(`policies has an entry whose name is "": a policy of a catalog needs a name`)
	}
	var catalog retryconf.Catalog
	for name := range entries {
		catalog.Define(name, retry.Policy{})
	}
	if err := catalog.Load(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	for _, e := range catalog.All() {
		found = append(found, named{e.Name, e.Policy, e.Name + "@" + file, placeOf(data, file, e.Name)})
	}
	if len(found) == 0 {
		return nil, errors.New("the catalog has no policies")
	}
	return found, nil
}
