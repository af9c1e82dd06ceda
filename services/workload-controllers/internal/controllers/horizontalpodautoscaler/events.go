package horizontalpodautoscaler

// eventSource is what users see as the origin of the events.
const eventSource = "horizontal-pod-autoscaler"

// The reasons that conditions and events share.
const (
	failedGetScale   = "FailedGetScale"
	failedCompute    = "FailedComputeMetricsReplicas"
	invalidSelector  = "InvalidSelector"
	selectorRequired = "SelectorRequired"
	ambiguous        = "AmbiguousSelector"
)
