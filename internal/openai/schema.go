package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of a schema and of one check against it. References make a short schema
// long: with two to the next level, each level doubles the work. A recursive schema has
// no end to its length, which depends on the answer, so that the check is bounded too.
const (
	maxSubschemas = 10_000    // with all references written out, each cycle once
	maxSteps      = 1_000_000 // subschemas met in one check
	maxCheck      = 5 * time.Second
)

// schema is a client's schema and the bounds of the check under way. It is for one
// goroutine.
type schema struct {
	compiled *jsonschema.Schema
	sizes    map[*jsonschema.Schema]int // of each subschema, with its references written out
	steps    int                        // of the check under way
	deadline time.Time                  // of the check under way
}

var errTooLong = fmt.Errorf("it has more than %d subschemas with its references written out", maxSubschemas)

// schemaURL names the client's schema. Nothing is loaded from there.
const schemaURL = "schema://client/"

// compile compiles a client's schema, of draft 2020-12 unless it says otherwise. It may
// refer to itself and to nothing else: the library would read files.
func compile(raw json.RawMessage) (*schema, error) {
	value, err := unmarshal(string(raw))
	if err != nil {
		return nil, err
	}
	if subschemas(value) > maxSubschemas { // to compile them takes the square of their number
		return nil, errTooLong
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, value); err != nil {
		return nil, plain(err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, plain(err)
	}
	s := &schema{compiled: compiled, sizes: map[*jsonschema.Schema]int{}}
	size, err := s.bound(compiled)
	if err == nil && size > maxSubschemas {
		err = errTooLong
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// subschemas counts what can be a schema in a value: objects and booleans.
func subschemas(value any) int {
	n := 0
	switch value := value.(type) {
	case bool:
		n = 1
	case map[string]any:
		n = 1
		for _, v := range value {
			n += subschemas(v)
		}
	case []any:
		for _, v := range value {
			n += subschemas(v)
		}
	}
	return n
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and nothing is fetched here", quote(url))
}

// bound makes a subschema and all that it leads to count their steps, and returns its
// size, at most one more than maxSubschemas. Dynamic references are refused: where they
// lead is known only in a check.
func (s *schema) bound(sub *jsonschema.Schema) (int, error) {
	if size, known := s.sizes[sub]; known {
		return size, nil
	}
	if len(s.sizes) > maxSubschemas {
		return len(s.sizes), nil
	}
	switch {
	case sub.DynamicRef != nil:
		return 0, errors.New("it has a $dynamicRef: use $ref")
	case sub.RecursiveRef != nil:
		return 0, errors.New("it has a $recursiveRef: use $ref")
	}
	s.sizes[sub] = 1 // what a cycle back to it counts
	sub.Format = s.counting(sub.Format)
	total := 1
	for _, child := range children(sub) {
		size, err := s.bound(child)
		if err != nil {
			return 0, err
		}
		total = min(total+size, maxSubschemas+1)
	}
	s.sizes[sub] = total
	return total, nil
}

// counting is a format that counts a step before it is checked. It may be nil. A format
// is the one thing that the library asks for before it goes from a schema to others.
func (s *schema) counting(format *jsonschema.Format) *jsonschema.Format {
	counting := &jsonschema.Format{Validate: func(any) error { s.step(); return nil }}
	if format != nil {
		counting.Name = format.Name
		counting.Validate = func(v any) error { s.step(); return format.Validate(v) }
	}
	return counting
}

// tooMuch is what step panics with: the library has no other way out.
type tooMuch struct{}

func (s *schema) step() {
	s.steps++
	if s.steps > maxSteps || time.Now().After(s.deadline) {
		panic(tooMuch{})
	}
}

// validate checks a value within the bounds.
func (s *schema) validate(value any) (err error) {
	s.steps, s.deadline = 0, time.Now().Add(maxCheck)
	defer func() {
		switch v := recover().(type) {
		case nil:
		case tooMuch:
			err = errors.New("to check it against the schema is too much work")
		default:
			panic(v)
		}
	}()
	return s.compiled.Validate(value)
}

// children returns the schemas that a schema leads to, by its references too.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(
		[]*jsonschema.Schema{
			s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
			s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
		},
		s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems,
		slices.Collect(maps.Values(s.Properties)),
		slices.Collect(maps.Values(s.PatternProperties)),
		slices.Collect(maps.Values(s.DependentSchemas)),
	)
	loose := append(slices.Collect(maps.Values(s.Dependencies)), s.AdditionalProperties, s.Items, s.AdditionalItems)
	for _, value := range loose { // of several types
		switch value := value.(type) {
		case *jsonschema.Schema:
			list = append(list, value)
		case []*jsonschema.Schema:
			list = append(list, value...)
		}
	}
	return slices.DeleteFunc(list, func(child *jsonschema.Schema) bool { return child == nil })
}
