package class

import (
	"slices"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

const (
	// maxMemory bounds what all indexes together take, in bytes.
	maxMemory = 256 << 20
	// entryMemory is what an index takes for a node: a node and an item.
	entryMemory = 20
	// maxIdle bounds the classes that no Pod in the queue is of. The next Pod of one that is kept costs what changed
	// since the last; of one that is not, a look at every node. On 5,000 nodes their indexes take 100 MiB; on more than
	// 13,000 maxMemory bounds them.
	maxIdle = 1024
	// sweepEvery is after how many questions indexes are looked for that are of no use any more.
	sweepEvery = 1024
)

// Set is all classes.
type Set struct {
	byKey   map[string]*Class
	last    ID
	touched uint64
	idle    int
	entries int // nodes that the indexes hold verdicts on
	room    int // how many of these there may be
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{byKey: map[string]*Class{}, room: maxMemory / entryMemory} }

// Len returns the number of classes.
func (s *Set) Len() int { return len(s.byKey) }

// Join returns the class of the Pod. The Pod counts for it until Leave.
func (s *Set) Join(profile *rules.Profile, pod rules.Pod) *Class {
	key := profile.Key(pod)
	c := s.byKey[key]
	switch {
	case c == nil:
		c = s.add(profile, pod, key)
	case c.pods == 0:
		s.idle--
	}
	c.pods++
	return c
}

// Leave takes back one Join.
func (s *Set) Leave(c *Class) {
	if c.pods--; c.pods > 0 {
		return
	}
	s.idle++
	if c.Pins() != nil || c.outdated() {
		s.forget(c)
		return
	}
	if s.idle > maxIdle {
		s.forget(s.oldest(func(c *Class) bool { return c.pods == 0 }))
	}
}

// ForgetOutdated forgets the classes without Pods that no Pod can join any more, as a term of theirs is carried by
// none.
func (s *Set) ForgetOutdated() {
	for _, c := range s.byKey {
		if c.pods == 0 && c.outdated() {
			s.forget(c)
		}
	}
}

// Touch notes that the class is asked, and makes room when the indexes have grown too large or are of no use.
func (s *Set) Touch(c *Class, state *columns.State) {
	s.touched++
	c.touched = s.touched
	if s.touched%sweepEvery == 0 {
		s.dropStale(state)
	}
	for s.entries > s.room {
		victim := s.oldest(func(other *Class) bool { return other.index != nil && other != c })
		if victim == nil {
			return
		}
		victim.drop()
	}
}

// dropStale drops the indexes of classes without Pods that the next use would build again.
func (s *Set) dropStale(state *columns.State) {
	for _, c := range s.byKey {
		if c.pods == 0 && c.index != nil && c.index.stale(state) {
			c.drop()
		}
	}
}

func (s *Set) add(profile *rules.Profile, pod rules.Pod, key string) *Class {
	s.last++
	c := &Class{ID: s.last, Pod: pod, key: key, judge: newJudge(profile.Make(pod)), set: s}
	s.byKey[key] = c
	return c
}

// outdated reports whether a term that makes the class is dropped.
func (c *Class) outdated() bool {
	dropped := func(t *columns.Term) bool { return !t.Carried() }
	return slices.ContainsFunc(c.Pod.Terms, dropped) || slices.ContainsFunc(c.Pod.SelectedBy, dropped)
}

func (s *Set) forget(c *Class) {
	if c == nil {
		return
	}
	c.drop()
	delete(s.byKey, c.key)
	s.idle--
}

// oldest returns the class among those that was not asked for the longest time.
func (s *Set) oldest(among func(*Class) bool) *Class {
	var oldest *Class
	for _, c := range s.byKey {
		if among(c) && (oldest == nil || c.touched < oldest.touched) {
			oldest = c
		}
	}
	return oldest
}
