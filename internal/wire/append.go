package wire

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Markup is not escaped. The line ends of
// Unicode (U+0085, U+2028, U+2029) are, since some clients split a stream's lines at
// them. Bytes that are not UTF-8 become U+FFFD; a turn has none.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // start of what is still to be copied as it is
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				dst = append(dst, s[plain:i]...)
				dst = appendEscape(dst, rune(c))
				plain = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\u0085' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1 {
			dst = append(dst, s[plain:i]...)
			dst = appendEscape(dst, r)
			plain = i + size
		}
		i += size
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
