package scenario

// Kubectl lists what the unmodified kubectl shows and does of what runs, on any mesh: with simulated nodes, and with
// real containers on a single node. Those that take longest come first. No scenario of these lists ends a daemon, so
// they may run side by side.
var Kubectl = []Scenario{
	{"RolloutOfEachKind", RolloutOfEachKind},
	{"EveryKind", EveryKind},
	{"SetFields", SetFields},
	{"StatefulSetTemplate", StatefulSetTemplate},
	{"History", History},
	{"Creating", Creating},
	{"NodeByHand", NodeByHand},
	{"PauseAndResume", PauseAndResume},
	{"ProgressLines", ProgressLines},
	{"Restart", Restart},
	{"ReplicaSetAlone", ReplicaSetAlone},
	{"ReplicationControllerAlone", ReplicationControllerAlone},
	{"JobFails", JobFails},
	{"JobPatterns", JobPatterns},
	{"JobHandOver", JobHandOver},
	{"JobAlone", JobAlone},
	{"JobSuspended", JobSuspended},
	{"CreateAndChain", CreateAndChain},
	{"BudgetByShare", BudgetByShare},
	{"ReplicaSetDeletion", ReplicaSetDeletion},
	{"StatefulSetOnDelete", StatefulSetOnDelete},
	{"DaemonsBehindServices", DaemonsBehindServices},
	{"Overlap", Overlap},
}

// KubectlObjects lists what it shows and does of objects more than of what runs. Any mesh can show that, but simulated
// nodes suffice; make test-all runs it with real containers, too.
var KubectlObjects = []Scenario{
	{"ApplyAndDelete", ApplyAndDelete},
	{"RecursiveDirectories", RecursiveDirectories},
	{"Patch", Patch},
	{"ApplyOverScale", ApplyOverScale},
	{"Edit", Edit},
	{"ReplaceForce", ReplaceForce},
	{"WatchReplicaSets", WatchReplicaSets},
	{"SelectorReduced", SelectorReduced},
	{"ReplicationControllerDeletion", ReplicationControllerDeletion},
	{"CronJobFires", CronJobFires},
	{"CronJobCreated", CronJobCreated},
	{"FinishedJobGoes", FinishedJobGoes},
	{"ReplicaSetAcquires", ReplicaSetAcquires},
	{"Proxy", Proxy},
	{"DescribePod", DescribePod},
	{"DescribeDeployment", DescribeDeployment},
	{"QuotaHoldsRollout", QuotaHoldsRollout},
	{"QuotaOfAmounts", QuotaOfAmounts},
	{"QuotaOfKinds", QuotaOfKinds},
	{"PodSecurity", PodSecurity},
	{"AccountToken", AccountToken},
	{"ServiceEndpoints", ServiceEndpoints},
	{"EndpointsMirrored", EndpointsMirrored},
	{"Asking", Asking},
	{"Explaining", Explaining},
	{"Certificates", Certificates},
	{"BootstrapToken", BootstrapToken},
}

// KubectlSimulated lists what it shows and does where nodes are simulated: there are several, what runs there fails
// when it is told to, and what a Pod uses is unknown.
var KubectlSimulated = []Scenario{
	{"ScaledInARollout", ScaledInARollout},
	{"DeadlineExceeded", DeadlineExceeded},
	{"RollbackOnFailure", RollbackOnFailure},
	{"StatefulSetInParallel", StatefulSetInParallel},
	{"StatefulSetStuck", StatefulSetStuck},
	{"JobDisrupted", JobDisrupted},
	{"ForcedDeletion", ForcedDeletion},
	{"ForcedStateful", ForcedStateful},
	{"PartitionedNamespace", PartitionedNamespace},
	{"Drain", Drain},
	{"BudgetHoldsDrain", BudgetHoldsDrain},
	{"Autoscale", Autoscale},
}

// KubectlContained lists what it shows and does of real containers alone.
var KubectlContained = []Scenario{
	{"ScaleOfEachKind", ScaleOfEachKind},
	{"Sessions", Sessions},
	{"WaitForEach", WaitForEach},
	{"Exposing", Exposing},
	{"DebugPod", DebugPod},
	{"DebugNode", DebugNode},
	{"CopyTrees", CopyTrees},
}
