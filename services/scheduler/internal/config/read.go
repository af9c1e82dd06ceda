package config

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/configfile"
	"keelson.dev/kit/seconds"
)

// maxSeconds bounds what the file gives in seconds: a year.
const maxSeconds = 365 * 24 * 60 * 60

// period returns a number of seconds of the file, which must be at least the least.
func period(name string, n, least int64) (time.Duration, error) {
	if n < least || n > maxSeconds {
		return 0, fmt.Errorf("%s: %d, it must be from %d to %d", name, n, least, maxSeconds)
	}
	return seconds.Of(n), nil
}

// decodeArgs reads the arguments of a plugin, which may say their kind. There may be none.
func decodeArgs(raw []byte, kind string, into runtime.Object) error {
	if len(raw) == 0 {
		return nil
	}
	return configfile.Kind{APIVersion: apiVersion, Name: kind, Part: "args"}.Decode(raw, into)
}

// readers read the arguments of the plugins that take some.
var readers = map[string]func(*profile, []byte) error{
	"InterPodAffinity":                reader((*profile).affinityArgs),
	"NodeAffinity":                    reader((*profile).addedAffinity),
	"NodeResourcesBalancedAllocation": reader((*profile).balancedArgs),
	"NodeResourcesFit":                reader((*profile).fitArgs),
	"PodTopologySpread":               reader((*profile).spreadDefaults),
	"VolumeBinding":                   reader((*profile).bindingArgs),
}

// reader decodes the arguments and applies them; the text of an error of apply begins with a path below the arguments.
func reader[T any](apply func(*profile, *T) error) func(*profile, []byte) error {
	return func(p *profile, raw []byte) error {
		args := new(T)
		if err := decodeArgs(raw, reflect.TypeFor[T]().Name(), any(args).(runtime.Object)); err != nil {
			return err
		}
		if err := apply(p, args); err != nil {
			return fmt.Errorf("args.%w", err)
		}
		return nil
	}
}
