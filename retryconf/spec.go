package retryconf

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrygo/retry"
)

// Spec is the wire form of a retry.Policy: what of it is data, under snake_case keys. The zero value of a field means
// "not given", and what is not given has the default that retry.Policy documents.
//
// encoding/json reads a Spec strictly: an unknown or repeated key, a null and a value of another type are refused, all
// at once. Other decoders read it by its tags and by its fields' UnmarshalText, and are as strict as they are told to
// be: ask them to refuse unknown keys (yaml.v3's KnownFields, toml's MetaData.Undecoded). Both pass over an empty list in
// silence, yaml.v3 over a null as well, and toml takes a key in any case. Where that matters, decode into a
// map[string]any, and read its JSON.
type Spec struct {
	// Name is the policy's label. Empty means none.
	Name string `json:"name,omitempty" yaml:"name,omitempty" toml:"name,omitempty,omitzero"`
	// Extends names a preset, from which comes what is not given here: "aggressive", "standard", "patient",
	// "cautious" or "delivery", which is the zero policy. In a Catalog's document it can name any policy. Empty means
	// none.
	Extends string `json:"extends,omitempty" yaml:"extends,omitempty" toml:"extends,omitempty,omitzero"`
	// MaxAttempts is the total number of attempts, or "unlimited". Not given: 8, or len(delays)+1 for a list.
	MaxAttempts Attempts `json:"max_attempts,omitzero" yaml:"max_attempts,omitempty" toml:"max_attempts,omitempty,omitzero"`
	// Mode is "exponential", "linear", "fixed" ("constant" is read as the same) or "list". Not given: list where
	// there are delays, else exponential.
	Mode Mode `json:"mode,omitzero" yaml:"mode,omitempty" toml:"mode,omitempty,omitzero"`
	// Base is the first delay. Not given: 5s.
	Base Duration `json:"base,omitzero" yaml:"base,omitempty" toml:"base,omitempty,omitzero"`
	// Factor is the growth per attempt. Not given: 2 for exponential, 1 for linear.
	Factor Number `json:"factor,omitzero" yaml:"factor,omitempty" toml:"factor,omitempty,omitzero"`
	// Cap bounds every delay. Not given: 1h, and no cap for a list.
	Cap Duration `json:"cap,omitzero" yaml:"cap,omitempty" toml:"cap,omitempty,omitzero"`
	// Max is read as Cap; both at once are an error. encoding/json and Or move it there.
	Max Duration `json:"max,omitzero" yaml:"max,omitempty" toml:"max,omitempty,omitzero"`
	// Delays are the waits of a list. Not given: no list.
	Delays []Delay `json:"delays,omitempty" yaml:"delays,omitempty" toml:"delays,omitempty,omitzero"`
	// Jitter is "none", "full", "equal", "ratio" or "decorrelated". Not given: none.
	Jitter Jitter `json:"jitter,omitzero" yaml:"jitter,omitempty" toml:"jitter,omitempty,omitzero"`
	// JitterRatio is the half-width of ratio jitter, in (0,1]. Not given: 0.2.
	JitterRatio Number `json:"jitter_ratio,omitzero" yaml:"jitter_ratio,omitempty" toml:"jitter_ratio,omitempty,omitzero"`
	// AttemptTimeout bounds one attempt. Not given: no timeout.
	AttemptTimeout Duration `json:"attempt_timeout,omitzero" yaml:"attempt_timeout,omitempty" toml:"attempt_timeout,omitempty,omitzero"`
	// TTL bounds when an attempt may start. Not given: no limit.
	TTL Duration `json:"ttl,omitzero" yaml:"ttl,omitempty" toml:"ttl,omitempty,omitzero"`
	// MaxHint is the longest server hint that is obeyed. Not given: 1h.
	MaxHint Duration `json:"max_hint,omitzero" yaml:"max_hint,omitempty" toml:"max_hint,omitempty,omitzero"`
	// RetriesEnabled set to Off makes a policy that is Disabled. Not given: On.
	RetriesEnabled Switch `json:"retries_enabled,omitzero" yaml:"retries_enabled,omitempty" toml:"retries_enabled,omitempty,omitzero"`
}

// field is a Spec's field under its key.
type field struct {
	key string
	to  any // *string, *[]Delay or an encoding.TextUnmarshaler
}

// fields returns the fields of s, in the order in which they are documented.
func (s *Spec) fields() []field {
	return []field{
		{"name", &s.Name}, {"extends", &s.Extends}, {"max_attempts", &s.MaxAttempts}, {"mode", &s.Mode}, {"base", &s.Base},
		{"factor", &s.Factor}, {"cap", &s.Cap}, {"max", &s.Max}, {"delays", &s.Delays}, {"jitter", &s.Jitter},
		{"jitter_ratio", &s.JitterRatio}, {"attempt_timeout", &s.AttemptTimeout}, {"ttl", &s.TTL}, {"max_hint", &s.MaxHint},
		{"retries_enabled", &s.RetriesEnabled},
	}
}

// SetDelays reads a list of delays with commas between them, "1m,30m,3h", for flag.Func and the like.
func (s *Spec) SetDelays(text string) error {
	var delays []Delay
	for i, part := range strings.Split(text, ",") {
		var d Delay
		if err := d.UnmarshalText([]byte(strings.TrimSpace(part))); err != nil {
			e := err.(*FieldError)
			e.Path = fmt.Sprintf("delays[%d]", i)
			return e
		}
		delays = append(delays, d)
	}
	s.Delays = delays
	return nil
}

// FromEnviron reads a Spec from environment variables such as os.Environ returns: with the prefix "RETRY_",
// RETRY_MAX_ATTEMPTS=5, RETRY_BASE=10s, RETRY_DELAYS=1m,30m,3h and so on, the keys in upper case. Every variable that
// is wrong is reported at once, with its first fault: a bad value, or a variable with the prefix that is no key. Of two
// equal variables the last counts. What is wrong between fields is for Policy to tell.
func FromEnviron(prefix string, environ []string) (Spec, error) {
	var s Spec
	var bad fieldErrors
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		key, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		if err := s.setVariable(key, text); err != nil {
			bad.at(shortened(name), err)
		}
	}
	if bad != nil {
		return Spec{}, bad
	}
	return s, nil
}

// setVariable sets a field from the text of an environment variable, given its name without the prefix.
func (s *Spec) setVariable(name, text string) error {
	fields := s.fields()
	for i, f := range fields {
		fields[i].key = strings.ToUpper(f.key)
		if fields[i].key != name {
			continue
		}
		switch to := f.to.(type) {
		case *string:
			*to = text
			return nil
		case *[]Delay:
			return s.SetDelays(text)
		default:
			return to.(interface{ UnmarshalText([]byte) error }).UnmarshalText([]byte(text))
		}
	}
	return &FieldError{Rule: unknownKey(name, fields)}
}

// Or returns s with each field that is not given taken from defaults, as retry.Policy.Or does: if s gives mode, base,
// factor or delays, none of these four comes from defaults, and a jitter ratio comes along only to ratio jitter. Other
// than there, a given "none" and a given On override. Extends is a field like the others: what s extends comes after what
// defaults give.
func (s Spec) Or(defaults Spec) Spec {
	s = s.oneCap()
	defaults = defaults.oneCap()
	if s.Mode == 0 && s.Base == 0 && s.Factor == 0 && len(s.Delays) == 0 {
		s.Mode, s.Base, s.Factor, s.Delays = defaults.Mode, defaults.Base, defaults.Factor, defaults.Delays
	}
	or(&s.Name, defaults.Name)
	or(&s.Extends, defaults.Extends)
	or(&s.MaxAttempts, defaults.MaxAttempts)
	or(&s.Jitter, defaults.Jitter)
	if s.Jitter.mode() == retry.RatioJitter {
		or(&s.JitterRatio, defaults.JitterRatio)
	}
	or(&s.Cap, defaults.Cap)
	or(&s.AttemptTimeout, defaults.AttemptTimeout)
	or(&s.TTL, defaults.TTL)
	or(&s.MaxHint, defaults.MaxHint)
	or(&s.RetriesEnabled, defaults.RetriesEnabled)
	return s
}

func or[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// oneCap returns s with Max in the place of a Cap that is not given. Where both are given they stay, for Policy to tell.
func (s Spec) oneCap() Spec {
	if s.Cap == 0 {
		s.Cap, s.Max = s.Max, 0
	}
	return s
}

// Policy returns the policy that s describes, or an error that names every bad field.
func (s Spec) Policy() (retry.Policy, error) {
	p, bad := s.policy("")
	if bad != nil {
		return retry.Policy{}, bad
	}
	return p, nil
}

const maxBesideCap = "is given together with cap; the two are the same"

// policy is Policy for a Spec that stands at path.
func (s Spec) policy(path string) (retry.Policy, fieldErrors) {
	var bad fieldErrors
	if s.Extends != "" {
		preset, ok := presets()[s.Extends]
		if !ok {
			bad.add(under(path, "extends"), quoted(s.Extends), "is not a preset: "+presetNames)
		}
		s.Extends = ""
		s = s.Or(preset)
	}
	if s.Cap != 0 && s.Max != 0 {
		bad.add(under(path, "max"), s.Max.String(), maxBesideCap)
	}
	if !utf8.ValidString(s.Name) {
		bad.add(under(path, "name"), quoted(s.Name), "is not valid UTF-8")
	}
	if s.Jitter > jitterOf(retry.DecorrelatedJitter) {
		bad.add(under(path, "jitter"), fmt.Sprint(uint8(s.Jitter)), "is not one of none, full, equal, ratio and decorrelated")
		s.Jitter = 0
	}
	if s.RetriesEnabled > Off {
		bad.add(under(path, "retries_enabled"), fmt.Sprint(uint8(s.RetriesEnabled)), "is neither true nor false")
	}
	s = s.oneCap()
	p := retry.Policy{
		Name:        s.Name,
		MaxAttempts: int(s.MaxAttempts),
		Backoff: retry.Backoff{
			Mode:        retry.Mode(s.Mode),
			Base:        time.Duration(s.Base),
			Factor:      float64(s.Factor),
			Cap:         time.Duration(s.Cap),
			Jitter:      s.Jitter.mode(),
			JitterRatio: float64(s.JitterRatio),
		},
		AttemptTimeout: time.Duration(s.AttemptTimeout),
		TTL:            time.Duration(s.TTL),
		MaxHint:        time.Duration(s.MaxHint),
		Disabled:       s.RetriesEnabled == Off,
	}
	for _, d := range s.Delays {
		p.Delays = append(p.Delays, time.Duration(d))
	}
	return p, append(bad, inKeys(path, p.Validate())...)
}

// inKeys puts what retry says of a policy's fields in terms of a document's keys.
func inKeys(path string, err error) (bad fieldErrors) {
	if err == nil {
		return nil
	}
	words := strings.NewReplacer("MaxAttempts", "max_attempts", "Mode List", "mode list", "Mode", "mode", "Base", "base",
		"Factor", "factor", "Cap", "cap", "Delays", "delays", "NoJitter", "none", "FullJitter", "full", "EqualJitter", "equal",
		"RatioJitter", "ratio jitter", "DecorrelatedJitter", "decorrelated", "JitterRatio", "jitter_ratio", "Jitter", "jitter",
		"AttemptTimeout", "attempt_timeout", "TTL", "ttl", "MaxHint", "max_hint", "Unlimited", "unlimited",
		"Exponential", "exponential", "Linear", "linear", "Fixed", "fixed", "List", "list")
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		var e *retry.FieldError
		if errors.As(err, &e) {
			key := words.Replace(strings.TrimPrefix(e.Field, "Policy."))
			bad.add(under(path, key), e.Value, words.Replace(e.Rule))
		}
	}
	return bad
}

// CodeError says which parts of a policy are code, which no Spec can express.
type CodeError struct {
	Fields []string // "Classify", "Budget", "Gate", "Observe", "Rand"
}

// Error returns "retryconf: Classify, Budget cannot be expressed as data".
func (e *CodeError) Error() string {
	return "retryconf: " + strings.Join(e.Fields, ", ") + " cannot be expressed as data"
}

// FromPolicy returns the Spec of a valid policy: its Policy method gives the same policy again, an empty list of Delays as
// none. Where p has parts that
// are code, the Spec is that of the rest, and the error is a *CodeError that lists them. For a policy that does not
// validate, and for a Name that is not UTF-8, it is an error that names the fields, and the Spec is zero.
func FromPolicy(p retry.Policy) (Spec, error) {
	bad := inKeys("", p.Validate())
	if !utf8.ValidString(p.Name) {
		bad.add("name", quoted(p.Name), "is not valid UTF-8")
	}
	if bad != nil {
		return Spec{}, bad
	}
	s := specOf(p)
	code := CodeError{}
	for _, part := range []struct {
		name string
		set  bool
	}{
		{"Classify", p.Classify != nil}, {"Budget", p.Budget != nil}, {"Gate", p.Gate != nil},
		{"Observe", p.Observe != nil}, {"Rand", p.Rand != nil},
	} {
		if part.set {
			code.Fields = append(code.Fields, part.name)
		}
	}
	if code.Fields != nil {
		return s, &code
	}
	return s, nil
}

const presetNames = `"aggressive", "standard", "patient", "cautious" and "delivery"`

// presets returns what extends can name everywhere, without their names: a policy has its own.
func presets() map[string]Spec {
	all := map[string]Spec{
		"aggressive": specOf(retry.Aggressive()),
		"standard":   specOf(retry.Standard()),
		"patient":    specOf(retry.Patient()),
		"cautious":   specOf(retry.Cautious()),
		"delivery":   specOf(retry.Policy{}),
	}
	for name, s := range all {
		s.Name = ""
		all[name] = s
	}
	return all
}

// specOf returns what of p is data.
func specOf(p retry.Policy) Spec {
	s := Spec{
		Name:           p.Name,
		MaxAttempts:    Attempts(p.MaxAttempts),
		Mode:           Mode(p.Mode),
		Base:           Duration(p.Base),
		Factor:         Number(p.Factor),
		Cap:            Duration(p.Cap),
		JitterRatio:    Number(p.JitterRatio),
		AttemptTimeout: Duration(p.AttemptTimeout),
		TTL:            Duration(p.TTL),
		MaxHint:        Duration(p.MaxHint),
	}
	if p.Jitter != retry.NoJitter {
		s.Jitter = jitterOf(p.Jitter)
	}
	if p.Disabled {
		s.RetriesEnabled = Off
	}
	for _, d := range p.Delays {
		s.Delays = append(s.Delays, Delay(d))
	}
	return s
}
