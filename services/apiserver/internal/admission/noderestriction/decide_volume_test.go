package noderestriction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVolumes(t *testing.T) {
	const folder = "local.keelson.dev/folder"
	type edit = func(*corev1.PersistentVolume)
	volume := func(edits ...edit) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Name: "v", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{},
			Labels:     map[string]string{"local.keelson.dev/node": "n1"},
			Finalizers: []string{"kubernetes.io/pv-protection", folder},
		}}
		for _, edit := range edits {
			edit(v)
		}
		return v
	}
	drop := func(v *corev1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] }
	both := func(more edit) edit { return func(v *corev1.PersistentVolume) { drop(v); more(v) } }
	of := func(node string) edit {
		return func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"local.keelson.dev/node": node} }
	}
	kept := func(v *corev1.PersistentVolume) { v.DeletionTimestamp = nil }
	for _, row := range []struct {
		name    string
		old     *corev1.PersistentVolume
		updated *corev1.PersistentVolume
		ok      bool
	}{
		{"its finalizer", volume(), volume(drop), true},
		{"its finalizer, without a version", volume(), volume(both(func(v *corev1.PersistentVolume) {
			v.ResourceVersion, v.ManagedFields = "", []metav1.ManagedFieldsEntry{{Manager: "nodeagent"}}
		})), true},
		{"once more", volume(drop), volume(drop), true},
		{"another node's", volume(of("n2")), volume(of("n2"), drop), false},
		{"nobody's", volume(func(v *corev1.PersistentVolume) { v.Labels = nil }), volume(drop), false},
		{"one that is not being deleted", volume(kept), volume(kept, drop), false},
		{"another finalizer", volume(), volume(func(v *corev1.PersistentVolume) { v.Finalizers = []string{folder} }),
			false},
		{"all finalizers", volume(), volume(func(v *corev1.PersistentVolume) { v.Finalizers = nil }), false},
		{"a new finalizer", volume(), volume(both(func(v *corev1.PersistentVolume) {
			v.Finalizers = append(v.Finalizers, "a/b")
		})), false},
		{"its claim, too", volume(), volume(both(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Name: "a"}
		})), false},
		{"its label, too", volume(), volume(of("n2"), drop), false},
		{"an annotation, too", volume(), volume(both(func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{"a": "b"}
		})), false},
		{"its phase, too", volume(), volume(both(func(v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeAvailable
		})), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := checkVolume("n1", row.updated, row.old); (err == nil) != row.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
