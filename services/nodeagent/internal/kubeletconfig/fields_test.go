package kubeletconfig

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// some returns a value of the type that is not its zero value.
func some(t reflect.Type) reflect.Value {
	value := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(t.Elem()))
		value.Elem().Set(some(t.Elem()))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.String:
		value.SetString("7")
	case reflect.Slice:
		value.Set(reflect.Append(value, reflect.New(t.Elem()).Elem()))
	case reflect.Map:
		value.Set(reflect.MakeMap(t))
		value.SetMapIndex(some(t.Key()), reflect.New(t.Elem()).Elem())
	case reflect.Struct: // a leaf: a duration or an amount
		if err := json.Unmarshal([]byte(`"7s"`), value.Addr().Interface()); err != nil {
			_ = json.Unmarshal([]byte(`"7"`), value.Addr().Interface())
		}
	default: // a number
		value.Set(reflect.ValueOf(7).Convert(t))
	}
	return value
}

// files calls f with each field of the API and a file with only that field.
func files(of reflect.Value, prefix string, file func() []byte, f func(path string, file []byte)) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		value := of.Field(i)
		if value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		if !isLeaf(value) {
			files(value, prefix+name+".", file, f)
		} else {
			value.Set(some(value.Type()))
			f(prefix+name, file())
		}
		of.Field(i).SetZero()
	}
}

// Each field of the API sets its flag, has the only accepted value, or is refused by its path; the page lists the
// supported ones.
func TestFieldsOfTheAPI(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/kubelet-configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	config := &kubeletv1beta1.KubeletConfiguration{}
	config.APIVersion, config.Kind = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	seen := map[string]bool{}
	file := func() []byte {
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	files(reflect.ValueOf(config).Elem(), "", file, func(path string, file []byte) {
		seen[path] = true
		settings, err := Read(file)
		_, isFixed := fixed[path]
		flag, isFlag := flags[path]
		switch {
		case isFixed: // TestRead has its values
		case isFlag && (err != nil || len(settings) != 1 || settings[0].Field != path || settings[0].Flag != flag):
			t.Errorf("%s: %v, %v", path, settings, err)
		case !isFlag && (err == nil || !strings.HasPrefix(err.Error(), path+": ")):
			t.Errorf("%s: %v, %v; want it refused by its path", path, settings, err)
		}
		row := "| `" + path + "` |"
		if strings.Contains(string(page), row) != (isFixed || isFlag) {
			t.Errorf("docs/reference/kubelet-configuration.md: whether it has the row %q is wrong", row)
		}
	})
	for path := range flags {
		if !seen[path] {
			t.Errorf("%s is no field of the API", path)
		}
	}
	for path := range fixed {
		if !seen[path] {
			t.Errorf("%s is no field of the API", path)
		}
	}
	if len(seen) < 120 {
		t.Errorf("only %d fields of the API were looked at", len(seen))
	}
}
