package controllerrevision

import (
	"bytes"
	"reflect"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Text is what the revision of a template remembers. It is safe for concurrent use.
type Text struct {
	data []byte

	mu    sync.Mutex        // guards known
	known map[identity]bool // whether revisions that are written another way hold it
}

// identity is a revision in one state.
type identity struct {
	uid     types.UID
	version string
}

func textOf(template *corev1.PodTemplateSpec) *Text {
	return &Text{data: encode(template), known: map[identity]bool{}}
}

// isIn reports whether a revision holds the text.
func (t *Text) isIn(r *appsv1.ControllerRevision) bool {
	if bytes.Equal(r.Data.Raw, t.data) {
		return true
	}
	if r.UID == "" || r.ResourceVersion == "" {
		return remembers(r, t.data)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := identity{r.UID, r.ResourceVersion}
	is, ok := t.known[key]
	if !ok {
		is = remembers(r, t.data)
		t.known[key] = is
	}
	return is
}

// Texts are those of the owners' present templates: every pass compares them with the history, and they change with
// the owner's generation only. The zero value has none. It is safe for concurrent use.
type Texts struct {
	mu sync.Mutex // guards of
	of map[types.UID]generation
}

type generation struct {
	number int64
	text   *Text
}

// Of returns the text of an owner's template; nil for an owner whose generations are not counted.
func (t *Texts) Of(owner metav1.Object, template *corev1.PodTemplateSpec) *Text {
	number := owner.GetGeneration()
	if number == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.of[owner.GetUID()]; ok && last.number == number {
		return last.text
	}
	text := textOf(template)
	if t.of == nil {
		t.of = map[types.UID]generation{}
	}
	t.of[owner.GetUID()] = generation{number, text}
	return text
}

// Forget drops the text of an owner that is gone.
func (t *Texts) Forget(owner types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, owner)
}

// encode returns what a revision remembers of a template: the strategic merge patch that gives its owner this
// template again, and nothing else. That is what kubectl rollout undo sends. Its keys are sorted: kubectl tells byte
// by byte whether a template is that of a revision, and a patch of the revision, which sorts them, may not change
// its data.
func encode(template *corev1.PodTemplateSpec) []byte {
	// Encoding an API type into memory, and maps of what came out of it, cannot fail.
	plain, _ := json.Marshal(template)
	fields := map[string]any{}
	_ = json.Unmarshal(plain, &fields)
	fields["$patch"] = "replace"
	data, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
	return data
}

// remembers reports whether a revision holds the data. One that was restored from a backup may be written
// another way.
func remembers(r *appsv1.ControllerRevision, data []byte) bool {
	if bytes.Equal(r.Data.Raw, data) {
		return true
	}
	var its, wanted any
	return json.Unmarshal(r.Data.Raw, &its) == nil && json.Unmarshal(data, &wanted) == nil &&
		reflect.DeepEqual(its, wanted)
}
