package podops

import "github.com/prometheus/client_golang/prometheus"

// Reason says why a Pod is deleted: the log line and the metric about it use the same word. What a deletion is like
// does not depend on it: the Pod keeps its own grace period (SAF-152), only the Pod with this UID is meant (SAF-176),
// and no condition precedes it, because none of the reasons is a disruption in the API's sense (SAF-071).
type Reason struct{ word string }

// The reasons of this service's controllers.
var (
	ScaledDown    = Reason{"ScaledDown"}    // more Pods than asked for
	Outdated      = Reason{"Outdated"}      // of an earlier template that an update replaces
	Recreated     = Reason{"Recreated"}     // has ended, and its name or place is for another
	NotSelected   = Reason{"NotSelected"}   // on a node that is not to run it any more
	OwnerFinished = Reason{"OwnerFinished"} // runs though its owner has finished or failed
)

// reasons are all of them.
var reasons = []Reason{ScaledDown, Outdated, Recreated, NotSelected, OwnerFinished}

// String returns the word.
func (r Reason) String() string { return r.word }

var deletions = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "workload_controllers_pod_deletions_total", Help: "Pods that a controller has deleted, by reason.",
}, []string{"controller", "reason"})

// Metrics counts the Pods that were deleted.
func Metrics() prometheus.Collector { return deletions }
