package openai

import (
	"encoding/json"
	"errors"

	"ocp/internal/wire"
)

// object is a JSON object by its exact keys.
type object wire.Object

// get returns a field's value; false if it is absent or null.
func (o object) get(name string) (json.RawMessage, bool) { return wire.Object(o).Get(name) }

// parse checks a body and returns the object it is.
func parse(body []byte) (object, error) {
	o, err := wire.Parse(body)
	return object(o), fromWire(err)
}

// fromWire makes an error of this API of one about JSON.
func fromWire(err error) error {
	bad, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	e := badRequest(bad.Path, bad.Error())
	if bad.WrongType {
		e.Code = "invalid_type"
	}
	return e
}

// jsonType is the type of a JSON value, worded for error messages.
type jsonType = wire.Type

const (
	typeNull   = wire.Null
	typeBool   = wire.Boolean
	typeNumber = wire.Number
	typeString = wire.Text
	typeArray  = wire.Array
	typeObject = wire.Dict
)

// typeOf returns the type of a valid JSON value.
func typeOf(raw json.RawMessage) jsonType { return wire.TypeOf(raw) }

// wrongType is the error for a value that is not of the type wanted.
func wrongType(param string, want string, raw json.RawMessage) error {
	return fromWire(wire.WrongType(param, want, raw))
}

func asString(raw json.RawMessage, param string) (string, error) {
	v, err := wire.AsString(raw, param)
	return v, fromWire(err)
}

func asBool(raw json.RawMessage, param string) (bool, error) {
	v, err := wire.AsBool(raw, param)
	return v, fromWire(err)
}

func asNumber(raw json.RawMessage, param string) (float64, error) {
	v, err := wire.AsNumber(raw, param)
	return v, fromWire(err)
}

func asArray(raw json.RawMessage, param string) ([]json.RawMessage, error) {
	v, err := wire.AsArray(raw, param)
	return v, fromWire(err)
}

func asObject(raw json.RawMessage, param string) (object, error) {
	v, err := wire.AsObject(raw, param)
	return object(v), fromWire(err)
}

// quote shows a value of the client's in a message to it.
func quote(s string) string { return wire.Quote(s) }
