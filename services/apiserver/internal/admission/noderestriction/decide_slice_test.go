package noderestriction

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func TestSlices(t *testing.T) {
	for name, row := range map[string]struct {
		spec resourcev1.ResourceSliceSpec
		want bool
	}{
		"its own":        {resourcev1.ResourceSliceSpec{NodeName: ptr.To("a")}, true},
		"another node's": {resourcev1.ResourceSliceSpec{NodeName: ptr.To("b")}, false},
		"of no node":     {resourcev1.ResourceSliceSpec{AllNodes: ptr.To(true)}, false},
		"of each device": {resourcev1.ResourceSliceSpec{PerDeviceNodeSelection: ptr.To(true)}, false},
	} {
		if err := checkSlice("a", &resourcev1.ResourceSlice{Spec: row.spec}); (err == nil) != row.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
