package config

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxSeconds bounds what the file gives in seconds: a year.
const maxSeconds = 365 * 24 * 60 * 60

// decode reads YAML or JSON. An unknown field, and one that stands twice, is an error that begins with its path below
// the prefix.
func decode(data []byte, kind, prefix string, into any) error {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kind, err)
	}
	mistakes, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kind, err)
	}
	if len(mistakes) == 0 {
		return nil
	}
	var at kjson.FieldError
	if !errors.As(mistakes[0], &at) {
		return fmt.Errorf("reading %s: %w", kind, mistakes[0])
	}
	return fmt.Errorf("%s%s: %s has no such field, or it stands twice", prefix, at.FieldPath(), kind)
}

// seconds returns a number of seconds of the file, which must be at least the least.
func seconds(name string, n, least int64) (time.Duration, error) {
	if n < least || n > maxSeconds {
		return 0, fmt.Errorf("%s: %d, it must be from %d to %d", name, n, least, maxSeconds)
	}
	return time.Duration(n) * time.Second, nil
}

// decodeArgs reads the arguments of a plugin, which may say their kind.
func decodeArgs(raw []byte, want string, into any, meta *metav1.TypeMeta) error {
	if len(raw) == 0 {
		return nil
	}
	if err := decode(raw, want, "args.", into); err != nil {
		return err
	}
	if meta.Kind != "" && meta.Kind != want {
		return fmt.Errorf("args.kind: %q, it must be %q", meta.Kind, want)
	}
	if meta.APIVersion != "" && meta.APIVersion != apiVersion {
		return fmt.Errorf("args.apiVersion: %q, it must be %q", meta.APIVersion, apiVersion)
	}
	return nil
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
		meta := any(args).(runtime.Object).GetObjectKind().(*metav1.TypeMeta)
		if err := decodeArgs(raw, reflect.TypeFor[T]().Name(), args, meta); err != nil {
			return err
		}
		if err := apply(p, args); err != nil {
			return fmt.Errorf("args.%w", err)
		}
		return nil
	}
}
