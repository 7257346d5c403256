package transcript

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxProjectName is the length beyond which the CLI cuts a project's name short.
const maxProjectName = 200

// ProjectDir is the folder in which the CLI keeps the transcripts of the working
// directory cwd: configDir/projects/NAME, where NAME is cwd with every UTF-16 code unit
// outside [a-zA-Z0-9] replaced by '-'. A name of more than 200 units is cut there and
// followed by '-' and a hash of cwd.
//
// cwd must be the absolute path with all symbolic links resolved, as the kernel gives
// it: the CLI names the folder by the real path whatever PWD says. On Linux it does not
// normalise Unicode. Measured on 2.1.207 and 2.1.332, names of 200, 201 and more than
// 200 units included.
func ProjectDir(configDir, cwd string) string {
	units := utf16.Encode([]rune(cwd))
	var name strings.Builder
	for _, unit := range units[:min(len(units), maxProjectName)] {
		if isAlphanumeric(unit) {
			name.WriteByte(byte(unit))
		} else {
			name.WriteByte('-')
		}
	}
	if len(units) > maxProjectName {
		name.WriteString("-" + hashName(units))
	}
	return filepath.Join(configDir, "projects", name.String())
}

func isAlphanumeric(unit uint16) bool {
	return 'a' <= unit && unit <= 'z' || 'A' <= unit && unit <= 'Z' || '0' <= unit && unit <= '9'
}

// hashName is the CLI's hash: h = 31h + unit in 32 bits with a sign, its absolute value
// in base 36.
func hashName(units []uint16) string {
	var h int32
	for _, unit := range units {
		h = 31*h + int32(unit)
	}
	wide := int64(h) // the absolute value of the least int32 is no int32
	return strconv.FormatInt(max(wide, -wide), 36)
}
