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

// History holds earlier recommendations and changes, oldest first. It is a value: methods return a new History and
// leave the old one unchanged.
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

// begun returns the history, starting with the current replicas as a recommendation if it is empty. So a controller
// without history scales down no sooner than one with it.
func (h History) begun(replicas int32, now time.Time) History {
	if len(h.Recommendations) == 0 {
		h.Recommendations = []Recommendation{{replicas, now}}
	}
	return h
}

// recommended adds a recommendation and drops those that no window reaches back to. It respects a window that a flag
// makes longer than the API allows.
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

// changed returns by how many replicas the target was scaled in the period before now.
func (h History) changed(period time.Duration, now time.Time) int64 {
	var by int64
	for _, c := range h.Changes {
		if c.At.After(now.Add(-period)) {
			by += int64(c.By)
		}
	}
	return by
}

// lowest returns the lowest of replicas and the recommendations in the window before now.
func (h History) lowest(replicas int32, window time.Duration, now time.Time) int32 {
	for _, r := range h.Recommendations {
		if r.At.After(now.Add(-window)) {
			replicas = min(replicas, r.Replicas)
		}
	}
	return replicas
}

// highest returns the highest of replicas and the recommendations in the window before now.
func (h History) highest(replicas int32, window time.Duration, now time.Time) int32 {
	for _, r := range h.Recommendations {
		if r.At.After(now.Add(-window)) {
			replicas = max(replicas, r.Replicas)
		}
	}
	return replicas
}
