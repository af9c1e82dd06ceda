package persistentvolume

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// free holds the free volumes, by shape and sorted by size, so that the search for the smallest that suffices need
// not look at all. A volume that a pass takes is reserved until settle: no two concurrent passes choose the same
// volume. It is safe for concurrent use.
type free struct {
	mu sync.Mutex // guards what follows
	// volumes are sorted by size; known are the same by name; taken are reserved by a pass.
	volumes map[shape][]*corev1.PersistentVolume
	known   map[string]*corev1.PersistentVolume
	taken   map[string]*corev1.PersistentVolume
}

func newFree() *free {
	return &free{volumes: map[shape][]*corev1.PersistentVolume{}, known: map[string]*corev1.PersistentVolume{},
		taken: map[string]*corev1.PersistentVolume{}}
}

// put records the current state of a volume. It forgets a volume that is not free.
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

// take reserves and returns the smallest volume that suits the claim and passes mayHave, or nil. contested says that
// another pass has reserved a volume that would suit.
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

// settle ends the reservation of a volume. now returns its current state, while the index is locked; nil forgets the
// volume.
func (f *free) settle(name string, now func() *corev1.PersistentVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, name)
	if volume := now(); volume != nil {
		f.insert(volume)
	}
}
