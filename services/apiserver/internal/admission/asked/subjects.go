package asked

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
)

// subjects are the resources that the objects of a kind may be about; use follow.
type subjects struct {
	objects    cache.SharedIndexInformer
	of         func(any) []subject
	namespaces corelisters.NamespaceLister
	told       cache.InformerSynced
	failed     error

	refreshing sync.Mutex // lets no older state replace a newer one
	known      atomic.Pointer[resources]
}

// follow keeps up with the informer's objects, of each of which of returns the subjects, and with the labels of
// namespaces.
func (s *subjects) follow(objects cache.SharedIndexInformer, of func(any) []subject,
	f informers.SharedInformerFactory) {
	s.objects, s.of, s.namespaces = objects, of, f.Core().V1().Namespaces().Lister()
	registration, err := objects.AddEventHandler(follow.Changes(s.refresh))
	if err != nil {
		s.failed = fmt.Errorf("following webhooks and policies: %w", err)
		return
	}
	s.told = registration.HasSynced
}

func (s *subjects) refresh() {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	if !s.told() {
		return
	}
	all := resources{}
	for _, object := range s.objects.GetStore().List() {
		all.add(s.of(object))
	}
	s.known.Store(&all)
}

// exclude reports whether no object is about what is written. As long as the objects are not known, none is excluded.
// A namespace that is not known here is left to the library, which asks the store.
func (s *subjects) exclude(a admission.Attributes) bool {
	if s.known.Load() == nil {
		s.refresh()
	}
	known, resource := s.known.Load(), a.GetResource().Resource
	switch {
	case known == nil:
		return false
	case !known.have(resource):
		return true
	case a.GetNamespace() == "" || resource == "namespaces":
		// Selectors match each object without a namespace, and the labels that a namespace is given by this write.
		return false
	}
	namespace, err := s.namespaces.Get(a.GetNamespace())
	return err == nil && !known.haveIn(resource, namespace.Labels)
}
