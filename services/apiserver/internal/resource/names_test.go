package resource

import "testing"

func TestPathSegmentName(t *testing.T) {
	for name, valid := range map[string]bool{"system:node": true, "Reader": true, "node-csr-Zf:x_": true, "csr-1": true,
		"a/b": false, "a%b": false, "..": false, ".": false} {
		if got := len(PathSegmentName(name, false)) == 0; got != valid {
			t.Errorf("%q is a name: %v, want %v", name, got, valid)
		}
	}
	if wrong := PathSegmentName("..", true); len(wrong) > 0 {
		t.Errorf("what a name may begin with: %v", wrong)
	}
}
