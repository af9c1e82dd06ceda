package requestbody

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"keelson.dev/services/apiserver/internal/scheme"
)

// The table is what the types of the API say.
func TestMergedLists(t *testing.T) {
	want := map[string][]string{}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(kind reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct || seen[kind] {
			return
		}
		seen[kind] = true
		for i := range kind.NumField() {
			f := kind.Field(i)
			walk(f.Type)
			if f.Type.Kind() != reflect.Slice || !strings.Contains(f.Tag.Get("patchStrategy"), "merge") {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want[name] = append([]string{}, want[name]...)
			if key := f.Tag.Get("patchMergeKey"); key != "" && !slices.Contains(want[name], key) {
				want[name] = append(want[name], key)
				slices.Sort(want[name])
			}
		}
	}
	for _, kind := range allTypes(t) {
		walk(kind)
	}
	if !reflect.DeepEqual(merged, want) {
		t.Errorf("the table is\n%v, the types have\n%v", merged, want)
	}
}

func allTypes(t *testing.T) []reflect.Type {
	t.Helper()
	s, err := scheme.New()
	if err != nil {
		t.Fatalf("registering the types: %v", err)
	}
	var all []reflect.Type
	for _, kind := range s.AllKnownTypes() {
		all = append(all, kind)
	}
	return all
}

func TestDepth(t *testing.T) {
	nested := func(open, closing string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(closing, n)
	}
	for name, row := range map[string]struct {
		body string
		ok   bool
	}{
		"100 lists":                   {nested("[", "]", 100), true},
		"101 lists":                   {nested("[", "]", 101), false},
		"100 objects":                 {nested(`{"a":`, "}", 100), true},
		"101 objects":                 {nested(`{"a":`, "}", 101), false},
		"one beside another":          {"[" + strings.Repeat("[],", 500) + "1]", true},
		"brackets in a string":        {`{"a":"` + strings.Repeat("[", 500) + `"}`, true},
		"brackets behind a quote":     {`{"a":"\"` + strings.Repeat("[", 500) + `"}`, true},
		"brackets behind a backslash": {`{"a":"\\",` + strings.Repeat("[", 500), false},
		"nothing":                     {"", true},
		"no JSON":                     {`"`, true},
	} {
		if err := checkDepth([]byte(row.body)); (err == nil) != row.ok || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, row := range map[string]struct {
		body string
		ok   bool
	}{
		"100 lists":        {strings.Repeat("- ", 100) + "a", true},
		"101 lists":        {strings.Repeat("- ", 101) + "a", false},
		"101 in flow":      {"a: " + nested("[", "]", 100), false},
		"JSON":             {nested("[", "]", 100), true},
		"JSON, 101":        {nested("[", "]", 101), false},
		"quotes of YAML":   {`{a: 'x"', b: ` + nested("[", "]", 100) + "}", false},
		"a block of text":  {"a: |\n  " + strings.Repeat("[", 500), true},
		"no YAML":          {"a: [", false},
		"100,000 of lists": {strings.Repeat("- ", 100_000) + "a", false},
	} {
		err := checkYAML([]byte(row.body), 3<<20)
		if (err == nil) != row.ok || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("YAML, %s: %v", name, err)
		}
	}
}

// entries is a list of n elements of the format.
func entries(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestStrategic(t *testing.T) {
	const name = `{"name":"c%d"}`
	for what, row := range map[string]struct{ patch, want string }{
		"an ordinary one": {
			`{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a","image":"i"},{"$patch":"delete","name":"b"}]}}`, ""},
		"no object": {`[1]`, ""}, "no JSON": {`{`, ""}, "a list for a directive's name": {`{"$patch":[]}`, ""},
		"a map for a name": {`{"spec":{"containers":[{"name":"a"},{"name":{}}]}}`,
			`spec.containers[1].name: must be a string or a number, since it tells the elements of the list apart`},
		"a list for a name": {`{"metadata":{"ownerReferences":[{"uid":[]}]}}`,
			`metadata.ownerReferences[0].uid: must be a string or a number`},
		"a map for a port": {`{"spec":{"containers":[{"name":"a","ports":[{"containerPort":{}}]}]}}`,
			`spec.containers[0].ports[0].containerPort: must be`},
		"a map for a Service's": {`{"spec":{"ports":[{"port":{}}]}}`, `spec.ports[0].port: must be`},
		"a map in the order": {`{"spec":{"$setElementOrder/containers":[{"name":{}}]}}`,
			`spec.$setElementOrder/containers[0].name: must be`},
		"a map among plain": {`{"metadata":{"$setElementOrder/finalizers":["a",{}]}}`,
			`metadata.$setElementOrder/finalizers[1]: must be a string, a number or a boolean`},
		"a map to be deleted": {`{"metadata":{"$deleteFromPrimitiveList/finalizers":[{}]}}`,
			`metadata.$deleteFromPrimitiveList/finalizers[0]: must be`},
		"a map to be kept": {`{"spec":{"$retainKeys":[{}]}}`, `spec.$retainKeys[0]: must be`},
		"1000 containers":  {`{"spec":{"containers":` + entries(name, 1000) + `}}`, ""},
		"1001 containers": {`{"spec":{"containers":` + entries(name, 1001) + `}}`,
			`spec.containers: a list of a strategic merge patch has at most 1000 elements, not 1001`},
		"1001 finalizers": {`{"metadata":{"finalizers":` + entries(`"f%d"`, 1001) + `}}`,
			`metadata.finalizers: a list`},
		"1001 in the order": {`{"spec":{"$setElementOrder/containers":` + entries(name, 1001) + `}}`,
			`spec.$setElementOrder/containers: a list`},
		"1001 to be deleted": {`{"metadata":{"$deleteFromPrimitiveList/finalizers":` + entries(`"f%d"`, 1001) +
			`}}`, `finalizers: a list`},
		"1001 of another list": {`{"spec":{"externalIPs":` + entries(`"%d"`, 1001) + `}}`, ""},
		"1000 in each of 5 lists": {`{"a":[` + strings.Repeat(`{"env":`+entries(name, 1000)+`},`, 4) + `{"env":` +
			entries(name, 1000) + `}]}`, ""},
		"one more": {`{"a":[` + strings.Repeat(`{"env":`+entries(name, 1000)+`},`, 5) +
			`{"env":[{"name":"x"}]}]}`, `the lists of a strategic merge patch have at most 5000 elements in all`},
	} {
		t.Run(what, func(t *testing.T) {
			err := checkStrategic([]byte(row.patch))
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// Whatever stands in a patch, the library answers it or never sees it.
func TestNoPatchBreaksTheLibrary(t *testing.T) {
	const stored = `{"metadata":{"finalizers":["a","b"],"ownerReferences":[{"uid":"u"}]},
		"spec":{"containers":[{"name":"a","ports":[{"containerPort":1}],"env":[{"name":"x"}]},{"name":"b"}]}}`
	values := []string{`{}`, `[]`, `1`, `null`, `"s"`, `[{}]`, `[[]]`, `[null]`, `[1]`, `["a",{}]`, `["a",["a"]]`,
		`{"name":{}}`, `[{"name":{}}]`,
		`[{"name":[]}]`, `[{"name":null}]`, `[{"uid":{}}]`, `[{"$patch":{}}]`, `[{"$patch":"delete"}]`,
		`[{"$patch":"delete","name":{}}]`,
		`[{"$patch":"replace"},{"name":{}}]`, `{"$patch":1}`, `{"$retainKeys":[{}]}`, `{"$retainKeys":1}`,
		`[{"name":"a","env":[{"name":{}}]}]`,
		`[{"name":"a","ports":[{"containerPort":[]}]}]`}
	broken := 0
	for _, at := range []string{"metadata", "spec"} {
		for _, list := range []string{"containers", "volumes", "finalizers", "ownerReferences", "nosuch"} {
			for _, key := range []string{list, "$setElementOrder/" + list, "$deleteFromPrimitiveList/" + list,
				"$retainKeys", "$patch"} {
				for _, value := range values {
					patch := fmt.Sprintf(`{%q:{%q:%s}}`, at, key, value)
					fault := apply(t, stored, patch)
					if fault != nil {
						broken++
					}
					if fault != nil && checkStrategic([]byte(patch)) == nil {
						t.Errorf("%s breaks the library: %v", patch, fault)
					}
				}
			}
		}
	}
	if broken == 0 {
		t.Error("no patch breaks the library any more: the check is not needed")
	}
}

// apply returns what the library panics with.
func apply(t *testing.T, stored, patch string) (fault any) {
	t.Helper()
	decode := func(text string) map[string]any {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return object
	}
	defer func() { fault = recover() }()
	_, _ = strategicpatch.StrategicMergeMapPatch(decode(stored), decode(patch), &corev1.Pod{})
	return nil
}
