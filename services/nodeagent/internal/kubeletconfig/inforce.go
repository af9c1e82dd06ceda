package kubeletconfig

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// InForce returns the configuration that corresponds to the values of the nodeagent's flags: a file with the same
// effect. It ignores a flag that does not show its value.
func InForce(values *pflag.FlagSet) (*kubeletv1beta1.KubeletConfiguration, error) {
	config := &kubeletv1beta1.KubeletConfiguration{}
	config.APIVersion, config.Kind = kubeletv1beta1.SchemeGroupVersion.String(), "KubeletConfiguration"
	for _, path := range slices.Sorted(maps.Keys(flags)) {
		flag := values.Lookup(flags[path])
		if flag == nil {
			return nil, fmt.Errorf("%s: there is no flag --%s", path, flags[path])
		}
		if err := set(at(config, path), path, flag.Value); err != nil {
			return nil, fmt.Errorf("%s: --%s: %w", path, flags[path], err)
		}
	}
	for path, value := range fixed {
		if err := set(at(config, path), path, text(fmt.Sprint(value))); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return config, nil
}

// at returns the field of a path, after creating its pointers.
func at(config *kubeletv1beta1.KubeletConfiguration, path string) reflect.Value {
	value := reflect.ValueOf(config).Elem()
	for _, name := range strings.Split(path, ".") {
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				value.Set(reflect.New(value.Type().Elem()))
			}
			value = value.Elem()
		}
		of := value.Type()
		for i := range of.NumField() {
			if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name {
				value = value.Field(i)
				break
			}
		}
	}
	return value
}

// text is a value that does not come from a flag.
type text string

func (t text) String() string { return string(t) }

// set is the reverse of field.text.
func set(to reflect.Value, path string, value fmt.Stringer) error {
	said := value.String()
	if to.Kind() == reflect.Pointer {
		if said == "" && to.Type().Elem().Kind() != reflect.String {
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch field := to.Addr().Interface().(type) {
	case *[]string:
		*field = list(value)
	case *map[string]string:
		return setPairs(field, path, value)
	case *[]corev1.Taint:
		for _, entry := range list(value) {
			*field = append(*field, taint(entry))
		}
	case *metav1.Duration:
		var err error
		field.Duration, err = time.ParseDuration(said)
		return err
	default:
		return setScalar(to, path, said)
	}
	return nil
}

func setScalar(to reflect.Value, path, said string) error {
	switch to.Kind() {
	case reflect.Bool:
		value, err := strconv.ParseBool(said)
		to.SetBool(value)
		return err
	case reflect.String:
		if path == "containerLogMaxSize" {
			n, err := strconv.ParseInt(said, 10, 64)
			to.SetString(resource.NewQuantity(n, resource.BinarySI).String())
			return err
		}
		to.SetString(said)
		return nil
	case reflect.Float64:
		value, err := strconv.ParseFloat(said, 64)
		to.SetFloat(value)
		return err
	}
	value, err := strconv.ParseInt(said, 10, to.Type().Bits())
	if err == nil {
		to.SetInt(value)
	}
	return err
}

// list returns the entries of a flag with several.
func list(value fmt.Stringer) []string {
	if several, ok := value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(value.String(), "["), "]")
	entries, err := csv.NewReader(strings.NewReader(inside)).Read()
	if err == io.EOF {
		return nil
	}
	return entries
}

func setPairs(to *map[string]string, path string, value fmt.Stringer) error {
	for _, entry := range list(value) {
		key, of, ok := strings.Cut(entry, separator(path))
		if !ok {
			return fmt.Errorf("%q is no pair", entry)
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[key] = of
	}
	return nil
}

// taint parses a taint that is written KEY[=VALUE]:EFFECT.
func taint(entry string) corev1.Taint {
	rest, effect, _ := strings.Cut(entry, ":")
	key, value, _ := strings.Cut(rest, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}
