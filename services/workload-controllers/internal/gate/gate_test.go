package gate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// store is a cache at one moment.
type store struct {
	version string
	objects map[string]*corev1.Pod
}

func (s *store) GetByKey(key string) (any, bool, error) {
	object, ok := s.objects[key]
	return object, ok, nil
}

func (s *store) LastStoreSyncResourceVersion() string { return s.version }

func pod(uid types.UID, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: uid,
		ResourceVersion: version}}
}

func TestWritten(t *testing.T) {
	for _, c := range []struct {
		name    string
		version string // of the store
		cached  *corev1.Pod
		seen    bool
	}{
		{"not arrived", "9", nil, false},
		{"at the version before", "9", pod("u", "9"), false},
		{"at the version before, though the store is ahead for other reasons", "20", pod("u", "9"), false},
		{"arrived", "10", pod("u", "10"), true},
		{"changed since", "12", pod("u", "11"), true},
		{"a longer version is a later one", "100", pod("u", "100"), true},
		{"came and went", "10", nil, true},
		{"another of the name, from before", "9", pod("v", "8"), false},
		{"another of the name since", "11", pod("v", "11"), true},
		{"the store cannot tell", "", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &store{version: c.version, objects: map[string]*corev1.Pod{}}
			if c.cached != nil {
				s.objects["default/p"] = c.cached
			}
			if got := Written(s, pod("u", "10"))(); got != c.seen {
				t.Errorf("seen = %t, want %t", got, c.seen)
			}
		})
	}
}

func TestDeleted(t *testing.T) {
	s := &store{version: "10", objects: map[string]*corev1.Pod{"default/p": pod("u", "10")}}
	seen := Deleted(s, pod("u", "10"))
	if seen() {
		t.Error("seen while the object is there")
	}
	going := pod("u", "11")
	going.DeletionTimestamp = &metav1.Time{}
	for name, cached := range map[string]*corev1.Pod{"going": going, "another of the name": pod("v", "12")} {
		s.objects["default/p"] = cached
		if !seen() {
			t.Errorf("not seen: %s", name)
		}
	}
	delete(s.objects, "default/p")
	if !seen() {
		t.Error("not seen: gone")
	}
}

func TestGateOpensWhenAllWritesHaveBeenSeen(t *testing.T) {
	g := New()
	first, second := false, false
	g.Await("owner", "a", func() bool { return first })
	g.Await("owner", "b", func() bool { return second })
	if g.IsOpen("owner") {
		t.Error("open with two writes to see")
	}
	if !g.IsOpen("someone else") {
		t.Error("shut for an owner that wrote nothing")
	}
	first = true
	if g.IsOpen("owner") {
		t.Error("open with one write to see")
	}
	// A later write to the same object counts instead of the earlier one.
	g.Await("owner", "b", func() bool { return true })
	if !g.IsOpen("owner") {
		t.Error("shut with nothing left to see")
	}
	g.Await("owner", "c", func() bool { return false })
	g.Forget("owner")
	if !g.IsOpen("owner") {
		t.Error("shut for an owner that was forgotten")
	}
}
