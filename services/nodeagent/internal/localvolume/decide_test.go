package localvolume

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const handle = "pvc-11111111-2222-3333-4444-555555555555"

// released is a volume of this node that is being deleted and that no claim is bound to any more.
func released(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: handle, UID: "v", Labels: map[string]string{"local.keelson.dev/node": "n"},
			Finalizers:        []string{"example.com/other", "local.keelson.dev/folder"},
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "local.keelson.dev", VolumeHandle: handle}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
	}
	for _, c := range change {
		c(pv)
	}
	return pv
}

// What a node does about a volume whose label names the node.
func TestDecide(t *testing.T) {
	type pv = corev1.PersistentVolume
	nothing, release, remove := Reclaiming{}, Reclaiming{Release: true}, Reclaiming{Release: true, Remove: true}
	for name, row := range map[string]struct {
		change func(*pv)
		want   Reclaiming
	}{
		"deleted and free":    {func(*pv) {}, remove},
		"lives":               {func(v *pv) { v.DeletionTimestamp = nil }, nothing},
		"failed":              {func(v *pv) { v.Status.Phase = corev1.VolumeFailed }, remove},
		"still bound":         {func(v *pv) { v.Status.Phase = corev1.VolumeBound }, nothing},
		"protected":           {func(v *pv) { v.Finalizers[0] = "kubernetes.io/pv-protection" }, nothing},
		"of another node":     {func(v *pv) { v.Labels["local.keelson.dev/node"] = "m" }, nothing},
		"let go already":      {func(v *pv) { v.Finalizers = v.Finalizers[:1] }, nothing},
		"its data is to stay": {retain, release},
		"no policy":           {func(v *pv) { v.Spec.PersistentVolumeReclaimPolicy = "" }, release},
		"of another driver":   {func(v *pv) { v.Spec.CSI.Driver = "x" }, release},
		"of another source":   {func(v *pv) { v.Spec.CSI = nil }, release},
		"a hostile handle":    {func(v *pv) { v.Spec.CSI.VolumeHandle = "../pods" }, release},
		"a folder of another": {func(v *pv) { v.Name = "pvc-99999999-2222-3333-4444-555555555555" }, release},
		"a hostile name":      {func(v *pv) { v.Name, v.Spec.CSI.VolumeHandle = "..", ".." }, release},
		"a name that is a file": {func(v *pv) { v.Name, v.Spec.CSI.VolumeHandle = ".removing-x", ".removing-x" },
			release},
	} {
		pv := released(row.change)
		before := pv.DeepCopy()
		if got := Decide(pv, "n"); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
		if pv.String() != before.String() {
			t.Errorf("%s: the input has changed", name)
		}
	}
}

func retain(v *corev1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}
