package backup

import (
	"crypto/sha256"
	"testing"
)

func TestKindOf(t *testing.T) {
	for key, want := range map[string]string{
		"/registry/pods/default/web":                              "pods",
		"/registry/nodes/apps":                                    "nodes",
		"/registry/apps/deployments/default/web":                  "apps/deployments",
		"/registry/batch/jobs/a/b":                                "batch/jobs",
		"/registry/rbac.authorization.k8s.io/roles/kube-system/x": "rbac.authorization.k8s.io/roles",
		"/registry/example.com/widgets/a":                         "example.com/widgets",
		"/registry/ranges/serviceips":                             "ranges",
		"/registry/apps":                                          "apps/",
		"/keelson/identity":                                       "keelson",
		"compact_rev_key":                                         "compact_rev_key",
		"/apps/x/y":                                               "apps",
		"":                                                        "",
	} {
		if got := kindOf(key); got != want {
			t.Errorf("%q is of kind %q, want %q", key, got, want)
		}
	}
}

func keysOf(values map[string]string) map[string]digest {
	live := map[string]digest{}
	for key, value := range values {
		live[key] = sha256.Sum256([]byte(value))
	}
	return live
}

// Whatever differs of keys or values makes another checksum; in what order they came makes none.
func TestSummarize(t *testing.T) {
	base := summarize(keysOf(map[string]string{"/registry/pods/a/b": "1", "/registry/pods/a/c": "2"}))
	if base.Keys != 2 || base.Kinds["pods"] != 2 || len(base.Kinds) != 1 {
		t.Errorf("%+v", base)
	}
	for range 10 {
		if again := summarize(keysOf(map[string]string{"/registry/pods/a/c": "2", "/registry/pods/a/b": "1"})); again.
			Checksum != base.Checksum {
			t.Fatalf("%s and %s", again.Checksum, base.Checksum)
		}
	}
	seen := map[string]bool{base.Checksum: true}
	for _, other := range []map[string]string{
		{},
		{"/registry/pods/a/b": "1"},
		{"/registry/pods/a/b": "2", "/registry/pods/a/c": "1"},
		{"/registry/pods/a/b": "1", "/registry/pods/a/c": ""},
		{"/registry/pods/a/b": "1", "/registry/pods/a/d": "2"},
		{"/registry/pods/a/b": "1", "/registry/pods/a/c": "2", "": ""},
	} {
		sum := summarize(keysOf(other)).Checksum
		if seen[sum] {
			t.Errorf("%v has the checksum of something else", other)
		}
		seen[sum] = true
	}
}
