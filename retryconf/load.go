package retryconf

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/retrygo/retry"
)

// document is the JSON object that a Catalog loads, with the sections defaults and policies.
type document struct {
	defaults Spec
	policies map[string]Spec
}

// Load reads a JSON document and puts it in force:
//
//	{
//	  "defaults": {"jitter": "full", "attempt_timeout": "10s"},
//	  "policies": {
//	    "invoice-email": {"extends": "standard", "max_attempts": 6},
//	    "search": {"base": "20ms", "cap": "1s"}
//	  }
//	}
//
// Each field that an entry does not give comes from the policy that it extends, then from its definition in code, then
// from defaults, as with Spec.Or. Extends names a preset or any policy of the catalog. A policy of the catalog
// contributes its entry, the policy that it extends and its definition, but not the defaults. If an entry extends a
// preset, directly or through other policies, neither definition nor defaults contribute attempts, formula and cap.
// Load does not change parts that are code. A policy without an entry has its definition and the defaults. Each Load
// starts from the definitions and ignores earlier documents.
//
// A document is loaded as a whole or not at all. Load returns an error and changes no policy if the document is larger
// than 1 MiB, has a syntax error, an unknown or repeated key, an undefined policy, a bad value, an invalid policy or a
// cycle of extends, or if there is a mistake in the definitions. The error is then retry.FieldErrors with every fault,
// up to a hundred, each with its path, such as policies.invoice-email.factor.
func (c *Catalog) Load(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxDocumentBytes+1))
	if err != nil {
		return fmt.Errorf("retryconf: read: %w", err)
	}
	if len(data) > maxDocumentBytes {
		return tooLarge(maxDocumentBytes)
	}
	doc, bad := readDocument(data)

	c.mu.Lock()
	defer c.mu.Unlock()
	loading := loading{catalog: c, doc: doc, layers: map[string]layer{}}
	loading.bad = append(slices.Clone(c.bad), bad...)
	for _, name := range slices.Sorted(maps.Keys(doc.policies)) {
		if len(loading.bad) <= maxFaults && c.refs[name] == nil && !c.refused[name] {
			add(&loading.bad, under("policies", name), "", "is not defined in the code"+c.meant(name))
		}
	}
	loaded := make(map[*Ref]*effective, len(c.refs))
	for _, name := range c.names() {
		loaded[c.refs[name]] = loading.effective(name)
	}
	if loading.bad != nil {
		return ofDocument(sorted(loading.bad))
	}
	for ref, e := range loaded {
		ref.current.Store(e)
	}
	return nil
}

// LoadFile is Load of a file.
func (c *Catalog) LoadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("retryconf: %w", err)
	}
	defer f.Close()
	if err := c.Load(f); err != nil {
		return fmt.Errorf("%w (in %s)", err, path)
	}
	return nil
}

// WriteTo writes the current policies as a document that Load reads as the same policies, given the same definitions in
// code. It returns an error without writing if the document is larger than the 1 MiB that Load reads.
func (c *Catalog) WriteTo(w io.Writer) (int64, error) {
	c.mu.Lock()
	policies := map[string]Spec{}
	for name, ref := range c.refs {
		p := ref.Policy()
		s := specOf(p)
		// Given explicitly, because otherwise the definition's value would be used.
		s.Jitter = jitterOf(p.Jitter)
		s.RetriesEnabled = On
		if p.Disabled {
			s.RetriesEnabled = Off
		}
		s.Hedge = ref.current.Load().data
		if p.Name == ref.defined.Name {
			s.Name = ""
		}
		loaded := s.Or(specOf(ref.defined))
		loaded.Name = s.Name
		if !reflect.DeepEqual(loaded, s) { // only a preset replaces the definition's schedule
			s.Extends = "delivery"
		}
		policies[name] = s
	}
	c.mu.Unlock()
	text, err := json.MarshalIndent(map[string]any{"policies": policies}, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("retryconf: write: %w", err)
	}
	if len(text) >= maxDocumentBytes {
		return 0, tooLarge(maxDocumentBytes)
	}
	n, err := w.Write(append(text, '\n'))
	return int64(n), err
}

func readDocument(data []byte) (document, retry.FieldErrors) {
	doc := document{policies: map[string]Spec{}}
	bad := readObject(data, "", func(section string, value json.RawMessage) (bad retry.FieldErrors) {
		switch section {
		case schemaKey:
			bad = readSchemaKey(value)
		case "defaults":
			doc.defaults, bad = readSpec(value, section)
			if doc.defaults.Name != "" {
				add(&bad, "defaults.name", quoted(doc.defaults.Name), "is not allowed in defaults, where it would label all policies")
			}
			if doc.defaults.Extends != "" {
				add(&bad, "defaults.extends", quoted(doc.defaults.Extends), "is not allowed in defaults, only in a policy")
				doc.defaults.Extends = ""
			}
		case "policies":
			bad = readObject(value, section, func(name string, value json.RawMessage) retry.FieldErrors {
				s, bad := readSpec(value, under(section, name))
				doc.policies[name] = s
				return bad
			})
		default:
			add(&bad, under("", section), "", unknownKey(section, []field{{key: "defaults"}, {key: "policies"}}))
		}
		return bad
	})
	return doc, bad
}

// meant suggests a defined name that is close to an undefined one.
func (c *Catalog) meant(name string) string {
	var fields []field
	for _, known := range c.names() {
		fields = append(fields, field{key: known})
	}
	return strings.TrimPrefix(unknownKey(name, fields), "is not a known key")
}

type loading struct {
	catalog *Catalog
	doc     document
	layers  map[string]layer // of the policies resolved so far
	stack   []string         // the names being resolved, each extended by the one before
	bad     retry.FieldErrors
}

// layer is the entry of a policy, merged over the policy that it extends and its definition.
type layer struct {
	spec   Spec
	preset bool // it extends a preset, directly or through other policies
}

// effective returns the policy of that name under the document and records its faults.
func (l *loading) effective(name string) *effective {
	defined := l.catalog.refs[name].defined
	found := l.layer(name)
	defaults := l.doc.defaults
	if found.preset {
		defaults = defaults.unscheduled()
	}
	spec := found.spec.Or(defaults)
	p, bad := spec.policy(under("policies", name), defined)
	l.bad = append(l.bad, bad...)
	e := &effective{policy: p, data: spec.Hedge}
	if old := l.catalog.refs[name].current.Load(); old.data == e.data {
		e.hedge = old.hedge // whose Tracker keeps its delay
	} else {
		e.hedge, _ = spec.Hedge.policy("") // which spec.policy has checked
	}
	e.hedge.Name = p.Name
	_, given := l.doc.policies[name]
	e.loaded = given || !reflect.DeepEqual(specOf(p), specOf(defined)) || e.data != (Hedge{})
	return e
}

func (l *loading) layer(name string) layer {
	if known, ok := l.layers[name]; ok {
		return known
	}
	var found layer
	found.spec = l.doc.policies[name]
	extends := found.spec.Extends
	found.spec.Extends = ""
	l.stack = append(l.stack, name)
	path := under(under("policies", name), "extends")
	preset, isPreset := presets()[extends]
	switch {
	case extends == "":
	case isPreset:
		found.spec, found.preset = found.spec.Or(preset), true
	case slices.Contains(l.stack, extends):
		add(&l.bad, path, quoted(extends), "is a cycle: "+strings.Join(l.stack[slices.Index(l.stack, extends):], " → ")+" → "+extends)
	case l.catalog.refs[extends] == nil:
		add(&l.bad, path, quoted(extends), "is neither a policy nor a preset: "+presetNames+l.catalog.meant(extends))
	default:
		base := l.layer(extends)
		base.spec.Name = "" // a label is not inherited
		found.spec, found.preset = found.spec.Or(base.spec), base.preset
	}
	l.stack = l.stack[:len(l.stack)-1]
	defined := specOf(l.catalog.refs[name].defined)
	if found.preset {
		defined = defined.unscheduled()
	}
	found.spec = found.spec.Or(defined)
	l.layers[name] = found
	return found
}

// unscheduled returns s without the fields that a preset gives as a whole, which are attempts, formula and cap.
func (s Spec) unscheduled() Spec {
	s.MaxAttempts = 0
	s.Mode = 0
	s.Base = 0
	s.Factor = 0
	s.Cap = 0
	s.Max = 0
	s.Delays = nil
	return s
}
