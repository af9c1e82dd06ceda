// Package kubeletconfig reads the kubelet's configuration file, KubeletConfiguration of kubelet.config.k8s.io/v1beta1,
// as values of the nodeagent's flags, and shows the values of flags as such a file. fields.go says which field is
// which flag.
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

// page lists what a file may say.
const page = "docs/reference/kubelet-configuration.md"

// Setting is what a field of a file says, as a flag's value.
type Setting struct {
	Field, Flag, Value string
}

// Read returns what a file, YAML or JSON, says, ordered by field. A field with a zero value that stands for the
// kubelet's default says nothing. The error names every field that is wrong or that the nodeagent has nothing for, each
// by its path.
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

// field is one that a file gives a value.
type field struct {
	path  string
	value any
}

// said returns the fields below a structure of the API that are not zero, ordered by path. What a pointer points to was
// given, zero or not.
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

// isUnsaid also takes an empty list, which the API does not tell from none.
func isUnsaid(value reflect.Value) bool {
	isList := value.Kind() == reflect.Slice || value.Kind() == reflect.Map
	return value.IsZero() || isList && value.Len() == 0
}

// isLeaf reports whether a value has a text of its own: all but structures of fields.
func isLeaf(value reflect.Value) bool {
	_, ok := value.Addr().Interface().(json.Marshaler)
	return ok || value.Kind() != reflect.Struct
}
