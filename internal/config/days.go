package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Days is a duration that may also be given in whole days of 24 hours, as 400d.
type Days time.Duration

// maxDays is what a Duration has room for.
const maxDays = 100_000

// UnmarshalText reads 400d, or what a time.Duration is written as.
func (d *Days) UnmarshalText(text []byte) error {
	if number, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > maxDays {
			return fmt.Errorf("%q is not a number of days up to %dd", text, maxDays)
		}
		*d = Days(n) * Days(24*time.Hour)
		return nil
	}
	duration, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time such as 400d or 9600h", text)
	}
	*d = Days(duration)
	return nil
}
