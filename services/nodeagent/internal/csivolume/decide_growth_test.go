package csivolume

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gi = 1 << 30

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// boundClaim is a claim that says to have 1Gi, in a state of growth.
func boundClaim(state corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c", ResourceVersion: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: storage("1Gi"),
			Conditions: []corev1.PersistentVolumeClaimCondition{
				{Type: "ModifyingVolume", Status: "True"}, {Type: "Resizing", Status: "True"},
				{Type: "FileSystemResizePending", Status: "True"}}},
	}
	setState(&claim.Status, state)
	return claim
}

// boundVolume is the volume of the claim.
func boundVolume(size string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: storage(size), ClaimRef: &corev1.ObjectReference{UID: "c"},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: disk,
			VolumeHandle: "vol-1"}}}}
}

// A volume grows on the node when it has grown in the storage, and it is not the controller's turn.
func TestGrowing(t *testing.T) {
	for _, row := range []struct {
		name   string
		state  corev1.ClaimResourceStatus
		size   string
		held   int64
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		want   string
		noted  bool
	}{
		{name: "at rest", size: "1Gi", held: gi},
		{name: "pending", state: "NodeResizePending", size: "2Gi", held: gi, want: "2Gi"},
		{name: "in progress: an agent was killed", state: "NodeResizeInProgress", size: "2Gi", held: gi, want: "2Gi"},
		{name: "done and not written", state: "NodeResizeInProgress", size: "2Gi", held: 2 * gi, want: "2Gi"},
		{name: "pending, and nothing to grow", state: "NodeResizePending", size: "1Gi", held: gi, want: "1Gi"},
		{name: "a controller without states", size: "2Gi", held: gi, want: "2Gi"},
		{name: "the controller has begun", state: "ControllerResizeInProgress", size: "2Gi", held: gi},
		{name: "the controller has failed", state: "ControllerResizeInfeasible", size: "2Gi", held: gi},
		{name: "the node has failed", state: "NodeResizeInfeasible", size: "2Gi", held: gi},
		{name: "a state of later times", state: "Sleeping", size: "2Gi", held: gi},
		{name: "another node was first", size: "2Gi", held: gi, want: "2Gi", noted: true,
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Status.Capacity = storage("2Gi")
			}},
		{name: "another node was first, and it is here", size: "2Gi", held: 2 * gi,
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Status.Capacity = storage("2Gi")
			}},
		{name: "what is here is not known", size: "2Gi",
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Status.Capacity = storage("2Gi")
			}},
		{name: "smaller than the claim says", state: "NodeResizePending", size: "1Mi", held: gi},
		{name: "the claim does not say", state: "NodeResizePending", size: "2Gi", held: gi,
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Status.Capacity = nil }},
		{name: "the volume does not say", state: "NodeResizePending", size: "2Gi", held: gi,
			change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.Capacity = nil }},
		{name: "of an earlier claim", state: "NodeResizePending", size: "2Gi", held: gi,
			change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
				v.Spec.ClaimRef.UID = "before"
			}},
		{name: "of no claim", state: "NodeResizePending", size: "2Gi", held: gi,
			change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }},
		{name: "a claim of another volume", state: "NodeResizePending", size: "2Gi", held: gi,
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "pv-2" }},
	} {
		claim, pv := boundClaim(row.state), boundVolume(row.size)
		if row.change != nil {
			row.change(claim, pv)
		}
		got, text, noted := growing(claim, pv, row.held), "", false
		if got != nil {
			text, noted = got.to.String(), got.noted
		}
		if text != row.want || noted != row.noted {
			t.Errorf("%s: to %q, noted %v; want %q, %v", row.name, text, noted, row.want, row.noted)
		}
	}
}

// What is written to a claim: its size when it has grown, and otherwise why not; other conditions stay.
func TestStatusAfter(t *testing.T) {
	const kept = `{"type":"ModifyingVolume","status":"True","lastProbeTime":null,"lastTransitionTime":null},` +
		`{"type":"Resizing","status":"True","lastProbeTime":null,"lastTransitionTime":null},` +
		`{"type":"FileSystemResizePending","status":"True","lastProbeTime":null,"lastTransitionTime":null}`
	const why = `{"type":"NodeResizeError","status":"True","lastProbeTime":null,` +
		`"lastTransitionTime":"1970-01-01T00:00:09Z","message":"why"}`
	const version = `{"metadata":{"resourceVersion":"1","uid":"c"},"status":{`
	now := time.Unix(9, 0).UTC()
	to := resource.MustParse("2Gi")
	for _, row := range []struct {
		name string
		of   outcome
		want string
	}{
		{"grown", grown, version + `"allocatedResourceStatuses":{"storage":null},"capacity":{"storage":"2Gi"},` +
			`"conditions":[` + kept[:strings.Index(kept, ",{")] + `]}}`},
		{"in use", inUse, version + `"allocatedResourceStatuses":{"storage":"NodeResizePending"},"conditions":[` + kept + `,` +
			why + `]}}`},
		{"infeasible", infeasible, version + `"allocatedResourceStatuses":{"storage":"NodeResizeInfeasible"},"conditions":[` +
			kept + `,` + why + `]}}`},
		{"failed", failed, version + `"conditions":[` + kept + `,` + why + `]}}`},
		{"unclear", unclear, ""},
	} {
		claim := boundClaim(corev1.PersistentVolumeClaimNodeResizeInProgress)
		before := claim.DeepCopy()
		next := statusAfter(claim, to, row.of, "why", now)
		patch, err := patchOf(claim, next)
		if err != nil || string(patch) != row.want {
			t.Errorf("%s:\n%s, %v, want\n%s", row.name, patch, err, row.want)
		}
		if claim.String() != before.String() {
			t.Errorf("%s: the claim was changed", row.name)
		}
		claim.Status = *next
		if patch, err := patchOf(claim, statusAfter(claim, to, row.of, "why", now.Add(time.Hour))); err != nil ||
			patch != nil {
			t.Errorf("%s, once more: %s, %v", row.name, patch, err)
		}
	}
	for state, want := range map[corev1.ClaimResourceStatus]string{
		"":                     version + `"allocatedResourceStatuses":{"storage":"NodeResizeInProgress"}}}`,
		"NodeResizePending":    version + `"allocatedResourceStatuses":{"storage":"NodeResizeInProgress"}}}`,
		"NodeResizeInProgress": "",
	} {
		claim := boundClaim("")
		if state != "" {
			setState(&claim.Status, state)
		}
		if patch, err := patchOf(claim, statusBefore(claim)); err != nil || string(patch) != want {
			t.Errorf("before, %q: %s, %v, want %s", state, patch, err, want)
		}
	}
}

func TestBytesOf(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1500m": 2, "2Gi": 2 * gi, "9Ei": 1<<63 - 1, "1E": 1e18,
		"100000E": 1<<63 - 1} {
		if got := bytesOf(resource.MustParse(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
