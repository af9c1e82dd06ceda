package horizontalpodautoscaler

import (
	"slices"
	"time"
)

// The longest windows that the API allows.
const (
	longestWindow = time.Hour
	longestPeriod = 30 * time.Minute
)

// History is what was decided before, oldest first. It is a value: what adds to it leaves the old one as it was.
type History struct {
	Recommendations []Recommendation
	Changes         []Change
}

// Recommendation is how many replicas the metrics asked for at a time.
type Recommendation struct {
	Replicas int32
	At       time.Time
}

// Change is by how many replicas the target was scaled, down if negative.
type Change struct {
	By int32
	At time.Time
}

// begun is a history that has a beginning: that what there is was right. So a controller that knows nothing yet scales
// down no sooner than one that knows all.
func (h History) begun(replicas int32, now time.Time) History {
	if len(h.Recommendations) == 0 {
		h.Recommendations = []Recommendation{{replicas, now}}
	}
	return h
}

// recommended adds a recommendation and drops those that no window reaches back to. A window that a flag makes longer
// than the API allows is kept to as well.
func (h History) recommended(replicas int32, now time.Time, window time.Duration) History {
	h.Recommendations = append(slices.DeleteFunc(slices.Clone(h.Recommendations), func(r Recommendation) bool {
		return !r.At.After(now.Add(-max(longestWindow, window)))
	}), Recommendation{replicas, now})
	return h
}

func (h History) rescaled(by int32, now time.Time) History {
	h.Changes = append(slices.DeleteFunc(slices.Clone(h.Changes), func(c Change) bool {
		return !c.At.After(now.Add(-longestPeriod))
	}), Change{by, now})
	return h
}

// changed is by how many replicas the target was scaled in the period before now.
func (h History) changed(period time.Duration, now time.Time) int64 {
	var by int64
	for _, c := range h.Changes {
		if c.At.After(now.Add(-period)) {
			by += int64(c.By)
		}
	}
	return by
}

// lowest and highest are the extremes of the recommendations of a window before now and of one more.
func (h History) lowest(replicas int32, window time.Duration, now time.Time) int32 {
	for _, r := range h.Recommendations {
		if r.At.After(now.Add(-window)) {
			replicas = min(replicas, r.Replicas)
		}
	}
	return replicas
}

func (h History) highest(replicas int32, window time.Duration, now time.Time) int32 {
	for _, r := range h.Recommendations {
		if r.At.After(now.Add(-window)) {
			replicas = max(replicas, r.Replicas)
		}
	}
	return replicas
}
