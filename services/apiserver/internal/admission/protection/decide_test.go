package protection

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestProtect(t *testing.T) {
	const protects = "scheduling.k8s.io/podgroup-protection"
	for name, row := range map[string]struct {
		of     func(runtime.Object) string
		object runtime.Object
		want   []string
	}{
		"a claim":  {ofStorage, &corev1.PersistentVolumeClaim{}, []string{"kubernetes.io/pvc-protection"}},
		"a volume": {ofStorage, &corev1.PersistentVolume{}, []string{"kubernetes.io/pv-protection"}},
		"a volume with a finalizer": {ofStorage, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"local.keelson.dev/folder"}}},
			[]string{"local.keelson.dev/folder", "kubernetes.io/pv-protection"}},
		"a class of attributes": {ofStorage, &storagev1.VolumeAttributesClass{},
			[]string{"kubernetes.io/vac-protection"}},
		"a class of volumes":          {ofStorage, &storagev1.StorageClass{}, nil},
		"something else than storage": {ofStorage, &corev1.Pod{}, nil},
		"a group":                     {ofPodGroup, &schedulingv1beta1.PodGroup{}, []string{protects}},
		"a group with a finalizer": {ofPodGroup, &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"a/b"}}},
			[]string{"a/b", protects}},
		"a workload":                  {ofPodGroup, &schedulingv1beta1.Workload{}, nil},
		"something else than a group": {ofPodGroup, &corev1.Pod{}, nil},
	} {
		for range 2 { // A second pass changes nothing.
			protect(row.object, row.of)
			accessor, err := meta.Accessor(row.object)
			if err != nil {
				t.Fatal(err)
			}
			if got := accessor.GetFinalizers(); !slices.Equal(got, row.want) {
				t.Errorf("%s: %v, want %v", name, got, row.want)
			}
		}
	}
}
