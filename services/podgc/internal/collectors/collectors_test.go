package collectors

import "testing"

// silent are the collectors that do not answer keel explain themselves, and why.
var silent = map[string]string{
	"tainteviction": "pods tells of its decisions, beside its own about the same Pods",
}

// Every collector answers keel explain, or is named here.
func TestEachExplains(t *testing.T) {
	for _, r := range All(Options{}) {
		if _, known := silent[r.Name]; known == (len(r.Explains) > 0) {
			t.Errorf("%s tells about %v; an exception: %t", r.Name, r.Explains, known)
		}
	}
}
