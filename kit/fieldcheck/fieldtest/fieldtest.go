// Package fieldtest compares what a validation returns with what a test wants.
package fieldtest

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Check wants exactly one error for each of want, whose text, path first, begins with it.
func Check(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	texts := make([]string, 0, len(got))
	for _, err := range got {
		texts = append(texts, err.Error())
	}
	rest := slices.Clone(texts)
	for _, prefix := range want {
		i := slices.IndexFunc(rest, func(text string) bool { return strings.HasPrefix(text, prefix) })
		if i < 0 {
			t.Errorf("no error begins with %q; got:\n\t%s", prefix, strings.Join(texts, "\n\t"))
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) > 0 {
		t.Errorf("unexpected errors:\n\t%s", strings.Join(rest, "\n\t"))
	}
}
