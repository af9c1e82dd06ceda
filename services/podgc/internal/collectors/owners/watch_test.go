package owners

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/services/podgc/internal/resources"
)

// Where another object took a name between two lists, the one that had it is gone: its dependents do not keep an owner
// that is no more. DEP-168
func TestAnObjectIsReplacedUnderItsName(t *testing.T) {
	var seen, gone []types.UID
	w := &watcher{
		observe: func(o *Object) []types.UID { seen = append(seen, o.UID); return nil },
		remove:  func(uid types.UID) []types.UID { gone = append(gone, uid); return nil },
	}
	of := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}}
	}
	check := func(what string, wantSeen, wantGone int) {
		t.Helper()
		if len(seen) != wantSeen || len(gone) != wantGone {
			t.Errorf("%s: seen %v, gone %v", what, seen, gone)
		}
	}
	informer := w.handler(resources.Resource{}, nil)
	informer.OnAdd(of("a"), true)
	informer.OnUpdate(of("a"), of("a"))
	check("the same object", 2, 0)
	informer.OnUpdate(of("a"), of("b"))
	if check("another of the name", 3, 1); len(gone) == 1 && gone[0] != "a" {
		t.Errorf("%v is gone, want a", gone)
	}
	informer.OnDelete(cache.DeletedFinalStateUnknown{Obj: of("b")})
	check("gone unseen", 3, 2)
}
