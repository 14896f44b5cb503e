package retryconf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/retrygo/retry"
)

// Spec is the wire form of a retry.Policy. It is the part of a policy that is data, under snake_case keys. The zero
// value of a field means "not given". The policy then has the default that retry.Policy documents.
//
// encoding/json and the usual YAML packages read a Spec strictly. They refuse an unknown or repeated key, a null and a
// value of another type, all at once. Other decoders read it by its tags and by its fields' UnmarshalText, and are as
// strict as their options. With toml, refuse unknown keys by MetaData.Undecoded. It ignores an empty list and accepts a
// key in any case. If that matters, decode into a map[string]any and read its JSON.
type Spec struct {
	// Name is the policy's label, printable UTF-8 as unicode.IsPrint defines it. Empty means no label.
	Name string `json:"name,omitempty" yaml:"name,omitempty" toml:"name,omitempty,omitzero"`
	// Extends names the preset that supplies the fields not given here. It is "inline", "aggressive", "standard",
	// "patient", "cautious" or "delivery", which is the zero policy. In a Catalog's document it can name any policy.
	// Empty means that the policy extends no other.
	Extends string `json:"extends,omitempty" yaml:"extends,omitempty" toml:"extends,omitempty,omitzero"`
	// MaxAttempts is the total number of attempts, or "unlimited". The default is 8, or len(delays)+1 for a list.
	MaxAttempts Attempts `json:"max_attempts,omitzero" yaml:"max_attempts,omitempty" toml:"max_attempts,omitempty,omitzero"`
	// Mode is "exponential", "linear", "fixed" ("constant" is read as the same) or "list". The default is list if there
	// are delays, and otherwise exponential.
	Mode Mode `json:"mode,omitzero" yaml:"mode,omitempty" toml:"mode,omitempty,omitzero"`
	// Base is the first delay. The default is 5s.
	Base Duration `json:"base,omitzero" yaml:"base,omitempty" toml:"base,omitempty,omitzero"`
	// Factor is the growth per attempt. The default is 2 for exponential and 1 for linear.
	Factor Number `json:"factor,omitzero" yaml:"factor,omitempty" toml:"factor,omitempty,omitzero"`
	// Cap bounds every delay. The default is 1h, and no cap for a list.
	Cap Duration `json:"cap,omitzero" yaml:"cap,omitempty" toml:"cap,omitempty,omitzero"`
	// Max is another name for Cap. Giving both is an error. encoding/json and Or move its value to Cap.
	Max Duration `json:"max,omitzero" yaml:"max,omitempty" toml:"max,omitempty,omitzero"`
	// Delays are the waits of a list. The default is no list.
	Delays []Delay `json:"delays,omitempty" yaml:"delays,omitempty" toml:"delays,omitempty,omitzero"`
	// Jitter is "none", "full", "equal", "ratio" or "decorrelated". The default is "none".
	Jitter Jitter `json:"jitter,omitzero" yaml:"jitter,omitempty" toml:"jitter,omitempty,omitzero"`
	// JitterRatio is the half-width of ratio jitter, in (0,1]. The default is 0.2.
	JitterRatio Number `json:"jitter_ratio,omitzero" yaml:"jitter_ratio,omitempty" toml:"jitter_ratio,omitempty,omitzero"`
	// AttemptTimeout bounds one attempt. The default is no timeout.
	AttemptTimeout Duration `json:"attempt_timeout,omitzero" yaml:"attempt_timeout,omitempty" toml:"attempt_timeout,omitempty,omitzero"`
	// TTL bounds when an attempt may start. The default is no limit.
	TTL Duration `json:"ttl,omitzero" yaml:"ttl,omitempty" toml:"ttl,omitempty,omitzero"`
	// MaxHint is the longest server hint that is honored. The default is 1h.
	MaxHint Duration `json:"max_hint,omitzero" yaml:"max_hint,omitempty" toml:"max_hint,omitempty,omitzero"`
	// ResetAfter is how long an attempt must last to reset attempts and delays. The default is never.
	ResetAfter Duration `json:"reset_after,omitzero" yaml:"reset_after,omitempty" toml:"reset_after,omitempty,omitzero"`
	// RetriesEnabled set to Off makes the policy Disabled. The default is On.
	RetriesEnabled Switch `json:"retries_enabled,omitzero" yaml:"retries_enabled,omitempty" toml:"retries_enabled,omitempty,omitzero"`
	// Hedge starts a second call beside one that is slow. It is not a part of the retry.Policy. Hedge.Policy and
	// Ref.Hedge return it. Or takes it as a whole. The default is no hedges.
	Hedge Hedge `json:"hedge,omitzero" yaml:"hedge,omitempty" toml:"hedge,omitempty,omitzero"`
}

type field struct {
	key string
	to  any // *string, *[]Delay, *Hedge or an encoding.TextUnmarshaler
}

func (s *Spec) fields() []field {
	return []field{
		{"name", &s.Name}, {"extends", &s.Extends}, {"max_attempts", &s.MaxAttempts}, {"mode", &s.Mode}, {"base", &s.Base},
		{"factor", &s.Factor}, {"cap", &s.Cap}, {"max", &s.Max}, {"delays", &s.Delays}, {"jitter", &s.Jitter},
		{"jitter_ratio", &s.JitterRatio}, {"attempt_timeout", &s.AttemptTimeout}, {"ttl", &s.TTL}, {"max_hint", &s.MaxHint},
		{"reset_after", &s.ResetAfter}, {"retries_enabled", &s.RetriesEnabled}, {"hedge", &s.Hedge},
	}
}

// SetDelays reads a list of delays with commas between them, "1m,30m,3h", for flag.Func and the like.
func (s *Spec) SetDelays(text string) error {
	var delays []Delay
	for i, part := range strings.Split(text, ",") {
		var d Delay
		if err := d.UnmarshalText([]byte(strings.TrimSpace(part))); err != nil {
			return at(fmt.Sprintf("delays[%d]", i), err)
		}
		delays = append(delays, d)
	}
	s.Delays = delays
	return nil
}

// FromEnviron reads a Spec from environment variables in the form of os.Environ. With the prefix "RETRY_" it reads
// RETRY_MAX_ATTEMPTS=5, RETRY_BASE=10s, RETRY_DELAYS=1m,30m,3h, RETRY_HEDGE_DELAY=50ms and so on, with the keys in upper
// case. The error names every variable with the prefix that is not a key or has a bad value, with its first fault. If a
// variable appears twice, the last value is used. Policy finds conflicts between fields.
func FromEnviron(prefix string, environ []string) (Spec, error) {
	var s Spec
	var bad retry.FieldErrors
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		key, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		if err := setVariable(s.fields(), key, text); err != nil {
			bad.Append(at(shortened(name), err))
		}
	}
	if bad != nil {
		return Spec{}, bad
	}
	return s, nil
}

// setVariable sets a field from the text of an environment variable, given its name without the prefix.
func setVariable(fields []field, name, text string) error {
	for i, f := range fields {
		fields[i].key = strings.ToUpper(f.key)
		if h, ok := f.to.(*Hedge); ok && strings.HasPrefix(name, "HEDGE_") {
			return setVariable(h.fields(), strings.TrimPrefix(name, "HEDGE_"), text)
		}
		if fields[i].key != name {
			continue
		}
		switch to := f.to.(type) {
		case *string:
			*to = text
			return nil
		case *[]Delay:
			var s Spec
			err := s.SetDelays(text)
			*to = s.Delays
			return err
		case *Hedge:
			return valueError(text, "is an object: set HEDGE_DELAY and so on")
		default:
			return to.(interface{ UnmarshalText([]byte) error }).UnmarshalText([]byte(text))
		}
	}
	return fault("", "", unknownKey(name, fields))
}

// Or returns s with each field that is not given taken from defaults, as retry.Policy.Or does, except that a given
// "none" and a given On override. If s extends a preset, the fields of the preset come before the fields of defaults,
// which then do not supply attempts, formula and cap. The result does not extend the preset. Otherwise Extends is a
// field like the others.
func (s Spec) Or(defaults Spec) Spec {
	if preset, ok := presets()[s.Extends]; ok {
		s.Extends, defaults.Extends = "", ""
		s, defaults = s.Or(preset), defaults.unscheduled()
	}
	s, defaults = s.oneCap(), defaults.oneCap()
	s.Extends = cmp.Or(s.Extends, defaults.Extends)
	s.Jitter = cmp.Or(s.Jitter, defaults.Jitter)
	s.RetriesEnabled = cmp.Or(s.RetriesEnabled, defaults.RetriesEnabled)
	defaults.Jitter = s.Jitter // for Policy.Or, to which NoJitter means not given
	merged := specOf(s.over(retry.Policy{}).Or(defaults.over(retry.Policy{})))
	merged.Extends = s.Extends
	merged.Max = s.Max
	merged.Jitter = s.Jitter
	merged.RetriesEnabled = s.RetriesEnabled
	merged.Hedge = cmp.Or(s.Hedge, defaults.Hedge)
	return merged
}

// oneCap returns s with Max as Cap if Cap is not given. If both are given they stay, and policy refuses them.
func (s Spec) oneCap() Spec {
	if s.Cap == 0 {
		s.Cap, s.Max = s.Max, 0
	}
	return s
}

// over returns p with all its data replaced by the data of s. Extends and Max are not used.
func (s Spec) over(p retry.Policy) retry.Policy {
	jitter, _ := s.Jitter.mode() // policy refuses an unknown jitter
	p.Name = s.Name
	p.MaxAttempts = int(s.MaxAttempts)
	p.Backoff = retry.Backoff{
		Mode:        retry.Mode(s.Mode),
		Base:        time.Duration(s.Base),
		Factor:      float64(s.Factor),
		Cap:         time.Duration(s.Cap),
		Jitter:      jitter,
		JitterRatio: float64(s.JitterRatio),
	}
	for _, d := range s.Delays {
		p.Delays = append(p.Delays, time.Duration(d))
	}
	p.AttemptTimeout = time.Duration(s.AttemptTimeout)
	p.TTL = time.Duration(s.TTL)
	p.MaxHint = time.Duration(s.MaxHint)
	p.ResetAfter = time.Duration(s.ResetAfter)
	p.Disabled = s.RetriesEnabled == Off
	return p
}

// Policy returns the policy that s describes, or an error that names every bad field.
func (s Spec) Policy() (retry.Policy, error) {
	p, bad := s.policy("", retry.Policy{})
	if bad != nil {
		return retry.Policy{}, bad
	}
	return p, nil
}

const maxBesideCap = "is given together with cap, which means the same"

// policy is Policy for a Spec at path. The parts of the result that are code are taken from the given policy.
func (s Spec) policy(path string, code retry.Policy) (retry.Policy, retry.FieldErrors) {
	var bad retry.FieldErrors
	if s.Extends != "" {
		if s = s.Or(Spec{}); s.Extends != "" {
			add(&bad, under(path, "extends"), quoted(s.Extends), "is not a preset: "+presetNames)
		}
	}
	if s.Cap != 0 && s.Max != 0 {
		add(&bad, under(path, "max"), s.Max.String(), maxBesideCap)
	}
	checkName(&bad, path, s.Name)
	if _, err := s.Jitter.mode(); err != nil {
		add(&bad, under(path, "jitter"), quoted(string(s.Jitter)), "is not one of none, full, equal, ratio and decorrelated")
		s.Jitter = ""
	}
	if s.RetriesEnabled > Off {
		add(&bad, under(path, "retries_enabled"), fmt.Sprint(uint8(s.RetriesEnabled)), "is neither true nor false")
	}
	_, hedge := s.Hedge.policy(under(path, "hedge"))
	p := s.oneCap().over(code)
	return p, slices.Concat(bad, inKeys(path, p.Validate()), hedge)
}

// checkName refuses a name of a policy at path that would break a log line or a terminal, or look like another one.
func checkName(bad *retry.FieldErrors, path, name string) {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		add(bad, under(path, "name"), quoted(name), "has characters that are not printable, or is not UTF-8")
	}
}

// inKeys returns the bad fields of a policy under a document's keys.
func inKeys(path string, err error) (bad retry.FieldErrors) {
	var fields retry.FieldErrors
	errors.As(err, &fields)
	words := strings.NewReplacer("MaxAttempts", "max_attempts", "Mode List", "mode list", "Mode", "mode", "Base", "base",
		"Factor", "factor", "Cap", "cap", "Delays", "delays", "NoJitter", "none", "FullJitter", "full", "EqualJitter", "equal",
		"RatioJitter", "ratio jitter", "DecorrelatedJitter", "decorrelated", "JitterRatio", "jitter_ratio", "Jitter", "jitter",
		"AttemptTimeout", "attempt_timeout", "TTL", "ttl", "MaxHint", "max_hint", "ResetAfter", "reset_after",
		"Unlimited", "unlimited", "Exponential", "exponential", "Linear", "linear", "Fixed", "fixed", "List", "list")
	for _, err := range fields {
		e := err.(*retry.FieldError)
		key := words.Replace(strings.TrimPrefix(e.Field, "Policy."))
		add(&bad, under(path, key), e.Value, words.Replace(e.Rule))
	}
	return bad
}

// NotDataError lists the parts of a policy that are code, which no Spec can express.
type NotDataError struct {
	Fields []string // never empty, of "Classify", "Wait", "Budget", "Pay", "Gate", "Observe", "Rand"
}

// Error returns a line such as "retryconf: Classify, Budget cannot be expressed as data".
func (e *NotDataError) Error() string {
	return "retryconf: " + strings.Join(e.Fields, ", ") + " cannot be expressed as data"
}

// FromPolicy returns the Spec of a valid policy. The Spec's Policy method returns the same policy, with nil for an
// empty list of Delays. If p has parts that are code, the Spec omits them, and the error is a *NotDataError that lists
// them. If p does not validate, or its Name is not printable UTF-8, the Spec is zero and the error
// names the fields.
func FromPolicy(p retry.Policy) (Spec, error) {
	bad := inKeys("", p.Validate())
	checkName(&bad, "", p.Name)
	if bad != nil {
		return Spec{}, bad
	}
	var code NotDataError
	for _, part := range []struct {
		name string
		set  bool
	}{
		{"Classify", p.Classify != nil}, {"Wait", p.Wait != nil}, {"Budget", p.Budget != nil}, {"Pay", p.Pay != nil},
		{"Gate", p.Gate != nil}, {"Observe", p.Observe != nil}, {"Rand", p.Rand != nil},
	} {
		if part.set {
			code.Fields = append(code.Fields, part.name)
		}
	}
	if code.Fields != nil {
		return specOf(p), &code
	}
	return specOf(p), nil
}

const presetNames = `"inline", "aggressive", "standard", "patient", "cautious" and "delivery"`

// presets returns the policies that extends can name everywhere. A preset's label is not inherited.
var presets = sync.OnceValue(func() map[string]Spec {
	all := map[string]Spec{"delivery": {}}
	for _, p := range []retry.Policy{retry.Inline(), retry.Aggressive(), retry.Standard(), retry.Patient(), retry.Cautious()} {
		s := specOf(p)
		s.Name = ""
		all[p.Name] = s
	}
	return all
})

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
		ResetAfter:     Duration(p.ResetAfter),
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
