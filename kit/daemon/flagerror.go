package daemon

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// allowed says what a flag of each pflag type takes.
var allowed = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"uint": "a whole number from 0", "uint16": "a whole number from 0 to 65535", "uint32": "a whole number from 0",
	"uint64":  "a whole number from 0",
	"float32": "a number", "float64": "a number",
	"bool":     "true or false",
	"duration": "a duration such as 90s or 5m",
	"ip":       "an IP address", "ipNet": "an address range such as 10.0.0.0/16",
}

// FlagError turns pflag's error about a value into one sentence with the flag and what it takes. It returns any other
// error as it is.
func FlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	if kind, ok := allowed[flag.Value.Type()]; ok {
		return fmt.Errorf("--%s: %q is not %s", flag.Name, invalid.GetValue(), kind)
	}
	return fmt.Errorf("--%s: %q: %w", flag.Name, invalid.GetValue(), invalid.Unwrap())
}
