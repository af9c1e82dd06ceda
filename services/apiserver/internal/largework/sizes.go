package largework

import (
	"time"

	"k8s.io/utils/lru"
)

const (
	// remembered is of how many large objects and lists the size is known, and of how many clients what they did last.
	remembered = 4096
	// lately is for how long a client's last large answer says what to expect of others in the same place.
	lately = time.Second
)

// place is where a client's requests are about objects of about one size: those of one resource and namespace, or the
// lists of these.
type place struct {
	client, group, resource, namespace string
	many                               bool
}

// sizes are how much requests were answered. A target that nobody has asked about counts as what its client was
// answered lately in the same place: objects that were made to be large lie beside each other, and a list may be asked
// for in many words.
type sizes struct{ targets, places *lru.Cache }

// answered is a large answer.
type answered struct {
	bytes int64
	at    time.Time
}

func newSizes() *sizes { return &sizes{targets: lru.New(remembered), places: lru.New(remembered)} }

// of is how many bytes to expect; zero where nobody knows.
func (s *sizes) of(target string, p place, now time.Time) int64 {
	if n, known := s.targets.Get(target); known {
		return n.(int64)
	}
	if a, known := s.places.Get(p); known && now.Sub(a.(answered).at) < lately {
		return a.(answered).bytes
	}
	return 0
}

// learn remembers what a request was answered. A target that has become small is forgotten.
func (s *sizes) learn(target string, p place, bytes int64, now time.Time) {
	if bytes < large {
		s.targets.Remove(target)
		return
	}
	s.targets.Add(target, bytes)
	s.places.Add(p, answered{bytes, now})
}
