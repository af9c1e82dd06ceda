// Package kubeletconfig reads the kubelet's configuration file, KubeletConfiguration of
// kubelet.config.k8s.io/v1beta1, as values of the nodeagent's flags, and shows the values of flags as such a file.
// fields.go maps fields to flags.
package kubeletconfig

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"keelson.dev/kit/configfile"
)

// page lists the supported fields.
const page = "docs/reference/kubelet-configuration.md"

// Setting is the value of a file's field, as a flag's value.
type Setting struct {
	Field, Flag, Value string
}

// Read returns the settings of a file, YAML or JSON, ordered by field. A field with a zero value that stands for
// the kubelet's default has no setting. The error names every invalid or unsupported field by its path.
func Read(data []byte) ([]Setting, error) {
	config := &kubeletv1beta1.KubeletConfiguration{}
	file := configfile.Kind{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Name: "KubeletConfiguration"}
	if err := file.Decode(data, config); err != nil {
		return nil, err
	}
	var settings []Setting
	var errs []error
	for _, field := range said(reflect.ValueOf(config).Elem(), "") {
		setting, err := field.setting()
		switch {
		case err != nil:
			errs = append(errs, err)
		case setting.Flag != "":
			settings = append(settings, setting)
		}
	}
	return settings, errors.Join(errs...)
}

// field is a field with a value in a file.
type field struct {
	path  string
	value any
}

// said returns the non-zero fields in a structure of the API, ordered by path. A field that is a pointer counts as
// given if it points to any value, including zero.
func said(of reflect.Value, prefix string) []field {
	var all []field
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		value := of.Field(i)
		if name == "" || isUnsaid(value) {
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		path := prefix + name
		if isLeaf(value) {
			all = append(all, field{path, value.Interface()})
		} else {
			all = append(all, said(value, path+".")...)
		}
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.path, b.path) })
	return all
}

// isUnsaid also treats an empty list as unsaid, which the API does not distinguish from none.
func isUnsaid(value reflect.Value) bool {
	isList := value.Kind() == reflect.Slice || value.Kind() == reflect.Map
	return value.IsZero() || isList && value.Len() == 0
}

// isLeaf reports whether a value has a text of its own: all except structures of fields.
func isLeaf(value reflect.Value) bool {
	_, ok := value.Addr().Interface().(json.Marshaler)
	return ok || value.Kind() != reflect.Struct
}
