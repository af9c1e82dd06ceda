package horizontalpodautoscaler

// eventSource is the source that users see on the events.
const eventSource = "horizontal-pod-autoscaler"

// The reasons that conditions and events share.
const (
	failedGetScale   = "FailedGetScale"
	failedCompute    = "FailedComputeMetricsReplicas"
	invalidSelector  = "InvalidSelector"
	selectorRequired = "SelectorRequired"
	ambiguous        = "AmbiguousSelector"
)
