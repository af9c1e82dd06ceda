package asked

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
)

// subjects are the resources that the objects of a kind may be about; use follow.
type subjects struct {
	objects cache.SharedIndexInformer
	of      func(any) []string
	told    cache.InformerSynced
	failed  error

	refreshing sync.Mutex // lets no older state replace a newer one
	known      atomic.Pointer[resources]
}

// follow keeps up with the informer's objects, of each of which of names the resources.
func (s *subjects) follow(objects cache.SharedIndexInformer, of func(any) []string) {
	s.objects, s.of = objects, of
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
	var all resources
	for _, object := range s.objects.GetStore().List() {
		all.add(s.of(object))
	}
	s.known.Store(&all)
}

// exclude says that no object is about what is written. As long as the objects are not known, none is excluded.
func (s *subjects) exclude(a admission.Attributes) bool {
	if s.known.Load() == nil {
		s.refresh()
	}
	known := s.known.Load()
	return known != nil && !known.have(a.GetResource().Resource)
}
