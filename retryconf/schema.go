package retryconf

import (
	"encoding/json"
	"maps"
	"slices"
)

// Schema returns the JSON Schema (draft 2020-12) of a policy. It accepts the documents that Spec.UnmarshalJSON accepts,
// except for a preset, a jitter_ratio, or a share or calls of a hedge that Spec.Policy refuses. It leaves to the parser
// repeated keys, a number of attempts written with a point or an exponent, durations above 292 years or below a
// nanosecond, numbers that a float64 or an int cannot hold, texts above 64 bytes and documents above 64 KiB. It leaves
// to Spec.Policy the rules between keys, such as a cap below its base, and characters in a name that are not printable.
func Schema() []byte {
	policy := policySchema("A retry policy")
	policy["properties"].(object)["extends"] = object{"enum": append(slices.Sorted(maps.Keys(presets())), "")}
	return indented(policy)
}

// CatalogSchema returns the JSON Schema of the document that Catalog.Load reads, with the same exceptions as Schema. It
// does not check which policies are defined or extended, since only the catalog knows that.
func CatalogSchema() []byte {
	policy := policySchema("A retry policy")
	delete(policy, schemaKey)
	delete(policy["properties"].(object), schemaKey)
	defaults := maps.Clone(policy)
	properties := maps.Clone(policy["properties"].(object))
	properties["name"] = object{"const": ""}
	properties["extends"] = object{"const": ""}
	defaults["title"] = "Defaults for all policies"
	defaults["properties"] = properties
	return indented(object{
		schemaKey:              draft,
		"title":                "A catalog of retry policies",
		"type":                 "object",
		"additionalProperties": false,
		"properties": object{
			schemaKey: object{"type": "string"}, "defaults": defaults,
			"policies": object{"type": "object", "additionalProperties": policy},
		},
	})
}

type object = map[string]any

const draft = "https://json-schema.org/draft/2020-12/schema"

func indented(schema object) []byte {
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // a map of strings, numbers and bools can always be marshaled
	}
	return append(text, '\n')
}

func policySchema(title string) object {
	properties := object{schemaKey: object{"type": "string"}}
	for _, f := range new(Spec).fields() {
		properties[f.key] = valueSchema(f.to)
	}
	properties["jitter_ratio"].(object)["maximum"] = 1
	return closed(object{
		schemaKey: draft,
		"title":   title,
		"not":     object{"required": []string{"cap", "max"}},
	}, properties)
}

// closed makes schema the schema of an object with these properties and no others.
func closed(schema, properties object) object {
	schema["type"] = "object"
	schema["additionalProperties"] = false
	schema["properties"] = properties
	return schema
}

// units is a duration in the form of time.ParseDuration.
const units = `^\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

func valueSchema(to any) object {
	switch to := to.(type) {
	case *Duration:
		return object{"type": "string", "pattern": units, "not": object{"pattern": `^[^1-9]*$`}}
	case *[]Delay:
		zero := `^[+-]?((0+\.?0*|\.0+)(ns|us|µs|μs|ms|s|m|h))+$`
		delay := object{"type": "string", "anyOf": []object{{"pattern": units}, {"pattern": zero}}}
		return object{"type": "array", "minItems": 1, "items": delay}
	case *Attempts:
		return object{"anyOf": []object{{"type": "integer", "minimum": 1}, {"const": unlimited}}}
	case *Number:
		return object{"type": "number", "exclusiveMinimum": 0}
	case *Mode:
		return object{"enum": []string{"exponential", "linear", "fixed", "constant", "list"}}
	case *Jitter:
		return object{"enum": []string{"none", "full", "equal", "ratio", "decorrelated"}}
	case *Switch:
		return object{"type": "boolean"}
	case *Hedge:
		properties := object{}
		for _, f := range to.fields() {
			properties[f.key] = valueSchema(f.to)
		}
		properties["share"].(object)["maximum"] = 0.5
		properties["max_calls"] = object{"type": "integer", "minimum": 1, "maximum": 8}
		return closed(object{}, properties)
	default:
		return object{"type": "string"}
	}
}
