package retryconf

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// Catalog holds policies under names. Code defines them, a document overrides them, and callers get the current one
// from its Ref. A Catalog is safe for concurrent use. The zero Catalog is empty and ready to use. A Catalog must not be
// copied.
type Catalog struct {
	mu   sync.Mutex // guards the fields below, but Ref.Policy does not lock it
	refs map[string]*Ref
	bad  retry.FieldErrors // mistakes in definitions

	refused map[string]bool // the names of definitions with a mistake, which refs does not have
}

// Ref is a reference to one policy of a Catalog. Catalog.Define makes it. The zero Ref has no name and the zero policy.
type Ref struct {
	name    string
	defined retry.Policy
	current atomic.Pointer[effective]
}

type effective struct {
	policy retry.Policy
	loaded bool  // as Entry.Loaded
	data   Hedge // hedge, as the document has it
	hedge  retryhedge.Policy
}

// Name returns the name under which the policy was defined.
func (r *Ref) Name() string { return r.name }

// Policy returns the current policy. It does not block or allocate. The policy's Delays are shared and must not be
// modified.
func (r *Ref) Policy() retry.Policy {
	if e := r.current.Load(); e != nil {
		return e.policy
	}
	return retry.Policy{}
}

// Hedge returns the hedge that the document gives the policy. If it gives no hedge, that is the zero Policy, which
// makes no hedges. Hedge does not block or allocate. The Tracker is the same until a document changes the hedge. The
// caller sets the Budget, which is code.
func (r *Ref) Hedge() retryhedge.Policy {
	if e := r.current.Load(); e != nil {
		return e.hedge
	}
	return retryhedge.Policy{}
}

// Define adds a policy under a name and returns the reference to it. If p has no Name, or the Name of a preset such as
// retry.Inline, it is labeled with name. Call Define before Load, because a later definition is used without the
// document until the next Load.
//
// It is a mistake if name is empty, already defined or the name of a preset, or if p does not validate. Err and every
// Load report it. Policy of the Ref then returns p unchanged, so that Do refuses an invalid policy.
func (c *Catalog) Define(name string, p retry.Policy) *Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, preset := presets()[p.Name]; preset || p.Name == "" {
		p.Name = name
	}
	p.Delays = slices.Clone(p.Delays)
	r := &Ref{name: name, defined: p}
	r.current.Store(&effective{policy: p})
	path := under("policies", name)
	_, isPreset := presets()[name]
	_, err := FromPolicy(p)
	var bad retry.FieldErrors
	switch {
	case name == "" || !utf8.ValidString(name):
		add(&c.bad, "policies", quoted(name), "is empty or not valid UTF-8")
	case isPreset:
		add(&c.bad, path, "", "is the name of a preset")
		c.refuse(name)
	case c.refs[name] != nil:
		add(&c.bad, path, "", "is defined twice")
	case errors.As(err, &bad):
		for _, err := range bad {
			c.bad.Append(at(under(path, pathOf(err)), err))
		}
		c.refuse(name)
	default:
		if c.refs == nil {
			c.refs = map[string]*Ref{}
		}
		c.refs[name] = r
	}
	return r
}

// refuse notes that name is defined, though with a mistake. c.mu is locked.
func (c *Catalog) refuse(name string) {
	if c.refused == nil {
		c.refused = map[string]bool{}
	}
	c.refused[name] = true
}

// Err returns nil or an error that names every mistake in the definitions.
func (c *Catalog) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bad).Err()
}

// Lookup returns the reference to the policy with the given name and reports whether there is one.
func (c *Catalog) Lookup(name string) (*Ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.refs[name]
	return r, ok
}

// Entry describes one policy in the result of All, which sets all fields.
type Entry struct {
	Name   string       // the name under which the policy is defined, never empty
	Loaded bool         // a document has an entry for it, or defaults that change it
	Policy retry.Policy // the current policy
}

// All returns every current policy, sorted by name.
func (c *Catalog) All() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries := make([]Entry, 0, len(c.refs))
	for _, name := range c.names() {
		e := c.refs[name].current.Load()
		entries = append(entries, Entry{name, e.loaded, e.policy})
	}
	return entries
}

func (c *Catalog) names() []string {
	names := make([]string, 0, len(c.refs))
	for name := range c.refs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
