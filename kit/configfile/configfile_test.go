package configfile

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDecode(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	file, part := Kind{APIVersion: "v1", Name: "ConfigMap"}, Kind{APIVersion: "v1", Name: "ConfigMap", Part: "a.b"}
	for _, row := range []struct {
		name string
		kind Kind
		text string
		want string
	}{
		{"a file", file, head + "data: {k: v}", ""},
		{"JSON", file, `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}`, ""},
		{"a part without a kind", part, "data: {k: v}", ""},
		{"a part with its kind", part, head + "data: {k: v}", ""},
		{"an empty file", file, "", `apiVersion: "", it must be "v1"`},
		{"another version", file, "apiVersion: v2\nkind: ConfigMap", `apiVersion: "v2", it must be "v1"`},
		{"another kind", file, "apiVersion: v1\nkind: Secret", `kind: "Secret", it must be "ConfigMap"`},
		{"a part of another version", part, "apiVersion: v2", `a.b.apiVersion: "v2", it must be "v1"`},
		{"a part of another kind", part, "kind: Secret", `a.b.kind: "Secret", it must be "ConfigMap"`},
		{"an unknown field", file, head + "metadata: {nam: x}",
			"metadata.nam: ConfigMap has no such field, or it stands twice"},
		{"an unknown field of a part", part, "date: {}", "a.b.date: ConfigMap has no such field, or it stands twice"},
		{"another case", file, head + "Data: {}", "Data: ConfigMap has no such field, or it stands twice"},
		{"two unknown fields", file, head + "x: 1\nz: 2", "x: ConfigMap has no such field, or it stands twice\n" +
			"z: ConfigMap has no such field, or it stands twice"},
		{"no YAML", file, "{", "is no YAML: "},
		{"a field twice", file, head + "data: {}\ndata: {}", "is no YAML: "},
		{"another type", file, head + "data: many", "is no ConfigMap: "},
		{"another type in a part", part, "data: many", "a.b: is no ConfigMap: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			var read corev1.ConfigMap
			err := row.kind.Decode([]byte(row.text), &read)
			switch {
			case row.want == "" && (err != nil || read.Data["k"] != "v"):
				t.Errorf("read %v, %v", read.Data, err)
			case row.want != "" && err == nil:
				t.Errorf("no error, want %s", row.want)
			case strings.HasSuffix(row.want, " ") && !strings.HasPrefix(err.Error(), row.want),
				row.want != "" && !strings.HasSuffix(row.want, " ") && err.Error() != row.want:
				t.Errorf("error %v, want %s", err, row.want)
			}
		})
	}
}
