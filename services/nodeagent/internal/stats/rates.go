package stats

import (
	"time"

	"k8s.io/utils/ptr"
)

// rates compute CPU usage in cores from the difference to an earlier reading of the same subject.
type rates struct {
	earlier map[string]earlier
}

type earlier struct {
	at       time.Time
	cpuNanos uint64
	cores    *uint64
}

// Readings closer than window are too inexact: the rate of the earlier one stays. Subjects that were not read for
// keep are forgotten.
const (
	window = time.Second
	keep   = 10 * time.Minute
)

// cores takes in a reading and returns the CPU usage before it, in billionths of a core; nil if it is not known
// yet.
func (r *rates) cores(subject string, nanos uint64, now time.Time) *uint64 {
	last, known := r.earlier[subject]
	passed := now.Sub(last.at)
	cores := last.cores
	switch {
	case !known || nanos < last.cpuNanos: // a new subject, or one that started again
		r.earlier[subject] = earlier{at: now, cpuNanos: nanos}
		cores = nil
	case passed >= window:
		cores = ptr.To(uint64(float64(nanos-last.cpuNanos) / passed.Seconds()))
		r.earlier[subject] = earlier{at: now, cpuNanos: nanos, cores: cores}
	}
	return cores
}

func (r *rates) forget(now time.Time) {
	for subject, last := range r.earlier {
		if now.Sub(last.at) > keep {
			delete(r.earlier, subject)
		}
	}
}
