package noderestriction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type claimEdit = func(*corev1.PersistentVolumeClaim)

// claimOf is a bound claim of 1Gi.
func claimOf(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c", ResourceVersion: "7"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound,
			Capacity:   corev1.ResourceList{"storage": resource.MustParse("1Gi")},
			Conditions: []corev1.PersistentVolumeClaimCondition{{Type: "ModifyingVolume"}, {Type: "Resizing"}}},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// in sets how far a claim has grown.
func in(state corev1.ClaimResourceStatus) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{"storage": state}
	}
}

func sized(size string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity["storage"] = resource.MustParse(size) }
}

func conditioned(types ...corev1.PersistentVolumeClaimConditionType) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = nil
		for _, t := range types {
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: t})
		}
	}
}

// A node says how far a claim has grown, as far as that is a node's to say, and nothing else.
func TestGrowth(t *testing.T) {
	const pending, busy, never = "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"
	for _, row := range []struct {
		name    string
		old     *corev1.PersistentVolumeClaim
		updated *corev1.PersistentVolumeClaim
		ok      bool
	}{
		{"nothing", claimOf(), claimOf(), true},
		{"begins", claimOf(in(pending)), claimOf(in(busy)), true},
		{"begins without a state", claimOf(), claimOf(in(busy)), true},
		{"ends", claimOf(in(busy)), claimOf(sized("2Gi"), conditioned("ModifyingVolume")), true},
		{"cannot", claimOf(in(busy)), claimOf(in(never), conditioned("ModifyingVolume", "Resizing", "NodeResizeError")),
			true},
		{"has to wait", claimOf(in(busy)), claimOf(in(pending), conditioned("NodeResizeError", "ModifyingVolume")),
			true},
		{"without a version", claimOf(in(pending)), claimOf(in(busy), func(c *corev1.PersistentVolumeClaim) {
			c.ResourceVersion, c.ManagedFields = "", []metav1.ManagedFieldsEntry{{Manager: "nodeagent"}}
		}), true},
		{"one that is not bound", claimOf(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "Pending" }),
			claimOf(in(busy), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "Pending" }), false},
		{"binds it", claimOf(in(pending)), claimOf(in(busy), func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = "Lost"
		}), false},
		{"shrinks", claimOf(in(busy)), claimOf(sized("1Mi")), false},
		{"has no size any more", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = nil
		}), false},
		{"has another resource", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity["example.com/x"] = resource.MustParse("1")
		}), false},
		{"is allocated more", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = corev1.ResourceList{"storage": resource.MustParse("9Gi")}
		}), false},
		{"what failed begins again", claimOf(in(never)), claimOf(in(busy)), false},
		{"what failed ends", claimOf(in(never)), claimOf(), false},
		{"takes over from the controller", claimOf(in("ControllerResizeInProgress")), claimOf(in(busy)), false},
		{"acts the controller", claimOf(in(pending)), claimOf(in("ControllerResizeInfeasible")), false},
		{"the state of another resource", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				"example.com/x": busy}
		}), false},
		{"drops another condition", claimOf(), claimOf(conditioned("Resizing")), false},
		{"adds another condition", claimOf(), claimOf(conditioned("ModifyingVolume", "Unused")), false},
		{"asks for more", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("9Gi")}
		}), false},
		{"its annotations", claimOf(), claimOf(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"a": "b"}
		}), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := checkGrowth("n1", row.updated, row.old); (err == nil) != row.ok {
				t.Errorf("got %v", err)
			}
			if grown := hasGrown(row.updated, row.old); grown != (row.name == "ends" || row.name == "shrinks" ||
				row.name == "has no size any more") {
				t.Errorf("it has grown: %v", grown)
			}
		})
	}
}

// A claim has the size of its volume, and no other.
func TestSize(t *testing.T) {
	type edit = func(*corev1.PersistentVolume)
	for name, row := range map[string]struct {
		edit edit
		ok   bool
	}{
		"its volume's": {func(*corev1.PersistentVolume) {}, true},
		"less": {func(v *corev1.PersistentVolume) {
			v.Spec.Capacity["storage"] = resource.MustParse("3Gi")
		}, false},
		"more": {func(v *corev1.PersistentVolume) {
			v.Spec.Capacity["storage"] = resource.MustParse("1Gi")
		}, false},
		"no driver's":      {func(v *corev1.PersistentVolume) { v.Spec.CSI = nil }, false},
		"nobody's":         {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		"an earlier claim": {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "before" }, false},
	} {
		volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("2Gi")},
			ClaimRef: &corev1.ObjectReference{UID: "c"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "v"}},
		}}
		row.edit(volume)
		if err := checkSize("n1", claimOf(sized("2Gi")), volume); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
