package class

import "keelson.dev/services/scheduler/internal/rules"

const (
	// maxEntries bounds the nodes that all indexes together hold verdicts on, at about 30 bytes each.
	maxEntries = 16 << 20
	// maxIdle bounds the classes that no Pod in the queue is of.
	maxIdle = 256
)

// Set is all classes.
type Set struct {
	byKey   map[string]*Class
	last    ID
	asked   uint64
	idle    int
	entries int // nodes that the indexes hold verdicts on
	room    int // how many of these there may be
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{byKey: map[string]*Class{}, room: maxEntries} }

// Len returns the number of classes.
func (t *Set) Len() int { return len(t.byKey) }

// Join returns the class of the Pod. The Pod counts for it until Leave.
func (t *Set) Join(profile *rules.Profile, pod rules.Pod) *Class {
	key := profile.Key(pod)
	c := t.byKey[key]
	switch {
	case c == nil:
		c = t.add(profile, pod, key)
	case c.pods == 0:
		t.idle--
	}
	c.pods++
	return c
}

// Leave takes back one Join.
func (t *Set) Leave(c *Class) {
	if c.pods--; c.pods > 0 {
		return
	}
	t.idle++
	if c.Pins() != nil {
		t.forget(c)
		return
	}
	if t.idle > maxIdle {
		t.forget(t.oldest(func(c *Class) bool { return c.pods == 0 }))
	}
}

// Touch notes that the class is asked, and makes room when the indexes have grown too large.
func (t *Set) Touch(c *Class) {
	t.asked++
	c.asked = t.asked
	for t.entries > t.room {
		victim := t.oldest(func(other *Class) bool { return other.index != nil && other != c })
		if victim == nil {
			return
		}
		victim.drop()
	}
}

func (t *Set) add(profile *rules.Profile, pod rules.Pod, key string) *Class {
	t.last++
	c := &Class{ID: t.last, Pod: pod, key: key, judge: newJudge(profile.Make(pod)), set: t}
	t.byKey[key] = c
	return c
}

func (t *Set) forget(c *Class) {
	if c == nil {
		return
	}
	c.drop()
	delete(t.byKey, c.key)
	t.idle--
}

// oldest returns the class among those that was not asked for the longest time.
func (t *Set) oldest(among func(*Class) bool) *Class {
	var oldest *Class
	for _, c := range t.byKey {
		if among(c) && (oldest == nil || c.asked < oldest.asked) {
			oldest = c
		}
	}
	return oldest
}
