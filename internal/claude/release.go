package claude

import (
	"slices"
	"strconv"
	"strings"
)

// TestedVersions are the releases of the CLI that this program's tests run on.
var TestedVersions = []string{"2.1.207", "2.1.332"}

// Tested reports whether a version is one of TestedVersions.
func Tested(version string) bool { return slices.Contains(TestedVersions, version) }

// FirstWithHook is the first release that has the MessageDisplay hook. The binary of
// 2.1.150 does not hold its name; there is no 2.1.151.
const FirstWithHook = "2.1.152"

// HasHook reports whether a release has the MessageDisplay hook. One whose version cannot
// be read as such is taken to.
func HasHook(version string) bool {
	got, ok := numbers(version)
	first, _ := numbers(FirstWithHook)
	return !ok || slices.Compare(got, first) >= 0
}

// knownBad says what is wrong with releases that are known not to work. There is none yet.
var knownBad = map[string]string{}

// KnownBad is what is wrong with a release that is known not to work; empty for others.
func KnownBad(version string) string { return knownBad[version] }

// numbers are those of a version such as 2.1.332 or 2.1.332-beta.1.
func numbers(version string) ([]int, bool) {
	plain, _, _ := strings.Cut(version, "-")
	var all []int
	for part := range strings.SplitSeq(plain, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, len(all) == 3
}
