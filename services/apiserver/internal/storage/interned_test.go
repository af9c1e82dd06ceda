package storage

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericstorage "k8s.io/apiserver/pkg/storage"
)

// What the watch cache keeps of objects that are alike lies once in memory; what is read to be changed is its reader's
// alone.
func TestTheWatchCacheKeepsOnceWhatIsAlike(t *testing.T) {
	s := configMaps(t)
	w := watchAll(t, s, "")
	seen := make([]uintptr, 2)
	for i, name := range []string{"a", "b"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}}
		must(t, s.Create(t.Context(), "/configmaps/"+name, object, &corev1.ConfigMap{}, 0))
		event := <-w.ResultChan()
		cached, err := meta.Accessor(event.Object)
		must(t, err)
		seen[i] = reflect.ValueOf(cached.GetLabels()).Pointer()
	}
	if seen[0] != seen[1] {
		t.Error("the labels of equal ConfigMaps lie twice in memory")
	}
	for _, name := range []string{"a", "b"} {
		var own corev1.ConfigMap
		must(t, s.Get(t.Context(), "/configmaps/"+name, genericstorage.GetOptions{}, &own))
		if at := reflect.ValueOf(own.Labels).Pointer(); at == seen[0] {
			t.Errorf("what was read of %s is what the watch cache keeps", name)
		}
	}
}
