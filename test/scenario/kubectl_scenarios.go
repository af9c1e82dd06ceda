package scenario

// Kubectl lists what the unmodified kubectl shows and does of what runs, on any mesh: with simulated nodes, and with
// real containers on a single node. Those that take longest come first. No scenario of these lists ends a daemon, so
// they may run side by side.
var Kubectl = []Scenario{
	{"RolloutOfEachKind", RolloutOfEachKind},
	{"KubectlOnEveryKind", KubectlOnEveryKind},
	{"KubectlSet", KubectlSet},
	{"StatefulSetTemplateChange", StatefulSetTemplateChange},
	{"RolloutHistory", RolloutHistory},
	{"KubectlCreate", KubectlCreate},
	{"CordonAndDrain", CordonAndDrain},
	{"RolloutPauseAndResume", RolloutPauseAndResume},
	{"RolloutStatusOfStuckRollout", RolloutStatusOfStuckRollout},
	{"RolloutRestart", RolloutRestart},
	{"StandaloneReplicaSet", StandaloneReplicaSet},
	{"StandaloneReplicationController", StandaloneReplicationController},
	{"JobFails", JobFails},
	{"JobPatterns", JobPatterns},
	{"JobPodAdoption", JobPodAdoption},
	{"JobCompletion", JobCompletion},
	{"JobSuspended", JobSuspended},
	{"KubectlCreatePipeline", KubectlCreatePipeline},
	{"DisruptionBudgetPercentage", DisruptionBudgetPercentage},
	{"ReplicaSetDeletion", ReplicaSetDeletion},
	{"StatefulSetOnDelete", StatefulSetOnDelete},
	{"ServiceForDaemonSet", ServiceForDaemonSet},
	{"ReplacementOfTerminatingPod", ReplacementOfTerminatingPod},
}

// KubectlObjects lists what it shows and does of objects more than of what runs. Any mesh can show that, but simulated
// nodes suffice; make test-all runs it with real containers, too.
var KubectlObjects = []Scenario{
	{"ApplyAndDelete", ApplyAndDelete},
	{"ApplyRecursively", ApplyRecursively},
	{"PatchTypes", PatchTypes},
	{"ApplyOverridesScale", ApplyOverridesScale},
	{"KubectlEdit", KubectlEdit},
	{"ReplaceForce", ReplaceForce},
	{"WatchReplicaSets", WatchReplicaSets},
	{"DeploymentSelectorReduced", DeploymentSelectorReduced},
	{"ReplicationControllerDeletion", ReplicationControllerDeletion},
	{"CronJobSchedule", CronJobSchedule},
	{"CronJobCreate", CronJobCreate},
	{"JobTTLAfterFinished", JobTTLAfterFinished},
	{"ReplicaSetAdoption", ReplicaSetAdoption},
	{"KubectlProxy", KubectlProxy},
	{"DescribePod", DescribePod},
	{"DescribeDeployment", DescribeDeployment},
	{"QuotaHoldsRollout", QuotaHoldsRollout},
	{"QuotaOfResources", QuotaOfResources},
	{"QuotaOfObjectCounts", QuotaOfObjectCounts},
	{"PodSecurityAdmission", PodSecurityAdmission},
	{"ServiceAccountTokenSecret", ServiceAccountTokenSecret},
	{"ServiceEndpoints", ServiceEndpoints},
	{"EndpointsMirrored", EndpointsMirrored},
	{"DiscoveryAndAccessReview", DiscoveryAndAccessReview},
	{"KubectlExplain", KubectlExplain},
	{"CertificateSigningRequests", CertificateSigningRequests},
	{"BootstrapToken", BootstrapToken},
}

// KubectlSimulated lists what it shows and does where nodes are simulated: there are several, what runs there fails
// when it is told to, and what a Pod uses is unknown.
var KubectlSimulated = []Scenario{
	{"ProportionalScaling", ProportionalScaling},
	{"ProgressDeadlineExceeded", ProgressDeadlineExceeded},
	{"RollbackOnFailure", RollbackOnFailure},
	{"StatefulSetParallel", StatefulSetParallel},
	{"StatefulSetStuckRollout", StatefulSetStuckRollout},
	{"JobPodDisruption", JobPodDisruption},
	{"ForceDeletion", ForceDeletion},
	{"ForceDeletionOfStatefulSetPod", ForceDeletionOfStatefulSetPod},
	{"NamespaceDeletionOnLostNode", NamespaceDeletionOnLostNode},
	{"NodeDrain", NodeDrain},
	{"DisruptionBudgetBlocksDrain", DisruptionBudgetBlocksDrain},
	{"HorizontalAutoscaling", HorizontalAutoscaling},
}

// KubectlContained lists what it shows and does of real containers alone.
var KubectlContained = []Scenario{
	{"ScaleOfEachKind", ScaleOfEachKind},
	{"LogsExecAndPortForward", LogsExecAndPortForward},
	{"KubectlWait", KubectlWait},
	{"KubectlExpose", KubectlExpose},
	{"DebugPod", DebugPod},
	{"DebugNode", DebugNode},
	{"KubectlCopy", KubectlCopy},
}
