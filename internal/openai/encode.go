package openai

import "ocp/internal/wire"

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte { return wire.AppendString(dst, s) }
