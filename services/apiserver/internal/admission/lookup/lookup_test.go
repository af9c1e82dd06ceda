package lookup

import (
	"testing"

	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	nodelisters "k8s.io/client-go/listers/node/v1"
	"k8s.io/client-go/tools/cache"
)

func class(name, handler string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
}

// What is in memory is taken from there, what was made a moment ago from the store, and what is nowhere is missing.
func TestGet(t *testing.T) {
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := known.Add(class("known", "of memory")); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(class("known", "of the store"), class("new", "of the store"))
	for name, want := range map[string]string{"known": "of memory", "new": "of the store", "missing": ""} {
		got, err := Get(t.Context(), name, nodelisters.NewRuntimeClassLister(known), client.NodeV1().RuntimeClasses())
		switch {
		case want == "" && !apierrors.IsNotFound(err):
			t.Errorf("%s: found %v, %v", name, got, err)
		case want != "" && (err != nil || got.Handler != want):
			t.Errorf("%s: found %v, %v, want that %s", name, got, err, want)
		}
	}
}
