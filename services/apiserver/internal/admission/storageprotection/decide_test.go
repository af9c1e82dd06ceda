package storageprotection

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestProtect(t *testing.T) {
	for name, row := range map[string]struct {
		object runtime.Object
		want   []string
	}{
		"a claim":  {&corev1.PersistentVolumeClaim{}, []string{"kubernetes.io/pvc-protection"}},
		"a volume": {&corev1.PersistentVolume{}, []string{"kubernetes.io/pv-protection"}},
		"a volume with a finalizer": {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{"local.keelson.dev/folder"}}},
			[]string{"local.keelson.dev/folder", "kubernetes.io/pv-protection"}},
		"something else": {&corev1.Pod{}, nil},
	} {
		for range 2 { // A second pass changes nothing.
			protect(row.object)
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
