package persistentvolume

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// free holds the volumes that claims may have, by shape and in the order of size, so that finding the smallest that
// suffices does not cost a look at all. A volume that is found is taken until it is settled what became of it: of the
// passes that run at once no two choose the same. It is safe for concurrent use.
type free struct {
	mu sync.Mutex // guards what follows
	// volumes are sorted by size, known are the same by name. taken are in the hands of a pass.
	volumes map[shape][]*corev1.PersistentVolume
	known   map[string]*corev1.PersistentVolume
	taken   map[string]*corev1.PersistentVolume
}

func newFree() *free {
	return &free{volumes: map[shape][]*corev1.PersistentVolume{}, known: map[string]*corev1.PersistentVolume{},
		taken: map[string]*corev1.PersistentVolume{}}
}

// put takes in a volume as it is now. One that is not free is forgotten.
func (f *free) put(volume *corev1.PersistentVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.insert(volume)
}

func (f *free) insert(volume *corev1.PersistentVolume) {
	f.drop(volume.Name)
	if f.taken[volume.Name] == nil && isFree(volume) {
		s := shapeOf(volume)
		at, _ := slices.BinarySearchFunc(f.volumes[s], volume, bySize)
		f.volumes[s], f.known[volume.Name] = slices.Insert(f.volumes[s], at, volume), volume
	}
}

// remove forgets a volume.
func (f *free) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(name)
}

func (f *free) drop(name string) {
	volume := f.known[name]
	if volume == nil {
		return
	}
	delete(f.known, name)
	s := shapeOf(volume)
	if at, found := slices.BinarySearchFunc(f.volumes[s], volume, bySize); found {
		f.volumes[s] = slices.Delete(f.volumes[s], at, at+1)
	}
	if len(f.volumes[s]) == 0 {
		delete(f.volumes, s)
	}
}

// take returns the smallest volume that suits the claim and may be had; nil: there is none. contested says that another
// pass has one in its hands that would suit.
func (f *free) take(claim *corev1.PersistentVolumeClaim, mayHave func(*corev1.PersistentVolume) bool) (
	found *corev1.PersistentVolume, contested bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sorted := f.volumes[shapeWanted(claim)]
	for _, volume := range sorted[firstOfSize(sorted, sizeWanted(claim)):] {
		if suits(volume, claim) && mayHave(volume) {
			f.drop(volume.Name)
			f.taken[volume.Name] = volume
			return volume, false
		}
	}
	for _, volume := range f.taken {
		contested = contested || suits(volume, claim)
	}
	return nil, contested
}

func firstOfSize(sorted []*corev1.PersistentVolume, wanted resource.Quantity) int {
	at, _ := slices.BinarySearchFunc(sorted, wanted, func(v *corev1.PersistentVolume, wanted resource.Quantity) int {
		if has := size(v); has.Cmp(wanted) < 0 {
			return -1
		}
		return 1
	})
	return at
}

// settle ends the hold on a volume. now is what it is, asked for while nothing else changes the index; nil forgets it.
func (f *free) settle(name string, now func() *corev1.PersistentVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, name)
	if volume := now(); volume != nil {
		f.insert(volume)
	}
}
