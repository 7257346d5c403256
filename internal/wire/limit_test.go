package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestMaxElements(t *testing.T) {
	list := func(n int, element string) []byte {
		return []byte("[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]")
	}
	for _, element := range []string{`1`, `{"a":[1,2],"b":","}`, `"\",\\"`, `[]`} {
		if got, err := AsArray(list(MaxElements, element), "p"); err != nil || len(got) != MaxElements {
			t.Errorf("%s: just as many as allowed: %d, %v", element, len(got), err)
		}
		_, err := AsArray(list(MaxElements+1, element), "p")
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Path != "p" || !strings.Contains(bad.Message, "more than 10000 elements") || bad.WrongType {
			t.Errorf("%s: got %v", element, err)
		}
	}
	if got, err := AsArray([]byte("[]"), "p"); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
