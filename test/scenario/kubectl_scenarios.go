package scenario

// Kubectl lists what the unmodified kubectl shows and does. Simulated nodes suffice, and since no scenario ends a
// daemon they may run side by side.
var Kubectl = []Scenario{
	{"ApplyAndDelete", ApplyAndDelete},
	{"RecursiveDirectories", RecursiveDirectories},
	{"CreateAndChain", CreateAndChain},
	{"Patch", Patch},
	{"ApplyOverScale", ApplyOverScale},
	{"Edit", Edit},
	{"ReplaceForce", ReplaceForce},
	{"History", History},
	{"PauseAndResume", PauseAndResume},
	{"Restart", Restart},
	{"WatchReplicaSets", WatchReplicaSets},
	{"ScaledInARollout", ScaledInARollout},
	{"SelectorReduced", SelectorReduced},
	{"ProgressLines", ProgressLines},
	{"DeadlineExceeded", DeadlineExceeded},
	{"ReplicaSetAlone", ReplicaSetAlone},
	{"ReplicationControllerAlone", ReplicationControllerAlone},
	{"ReplicationControllerDeletion", ReplicationControllerDeletion},
	{"ReplicaSetAcquires", ReplicaSetAcquires},
	{"ReplicaSetDeletion", ReplicaSetDeletion},
	{"Proxy", Proxy},
	{"DescribePod", DescribePod},
	{"DescribeDeployment", DescribeDeployment},
	{"ForcedDeletion", ForcedDeletion},
	{"PartitionedNamespace", PartitionedNamespace},
	{"Drain", Drain},
	{"Overlap", Overlap},
}
