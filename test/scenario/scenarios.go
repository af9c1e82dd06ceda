package scenario

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"keelson.dev/test/mesh"
)

// Scenario is a behaviour and its name.
type Scenario struct {
	Name string
	Run  func(*testing.T, mesh.Mesh)
}

// Everywhere lists the scenarios that any mesh can show.
var Everywhere = []Scenario{
	{"DeploymentRollout", DeploymentRollout},
	{"RollingUpdateBounds", RollingUpdateBounds},
	{"EndpointsDuringRollout", EndpointsDuringRollout},
	{"StatefulSetOrderedReady", StatefulSetOrderedReady},
	{"StatefulSetClaims", StatefulSetClaims},
	{"EphemeralVolume", EphemeralVolume},
	{"UnallocatedResourceClaims", UnallocatedResourceClaims},
	{"BackgroundCascadingDeletion", BackgroundCascadingDeletion},
	{"ForegroundCascadingDeletion", ForegroundCascadingDeletion},
	{"OwnerReferenceCycle", OwnerReferenceCycle},
	{"OrphanCascadingDeletion", OrphanCascadingDeletion},
	{"NamespaceDeletion", NamespaceDeletion},
	{"NodeAuthorization", NodeAuthorization},
	{"TaintBasedEviction", TaintBasedEviction},
	{"GangScheduling", GangScheduling},
	{"DaemonCrashDuringRollout", DaemonCrashDuringRollout},
}

// Simulated lists the scenarios that need three nodes for themselves.
var Simulated = []Scenario{
	{"GangPreemption", GangPreemption},
	{"DisruptionBudgetExample", DisruptionBudgetExample},
	{"SequentialNodeDrains", SequentialNodeDrains},
	{"RolloutIgnoresDisruptionBudget", RolloutIgnoresDisruptionBudget},
	{"StatefulSetEviction", StatefulSetEviction},
	{"PersistentVolumeBinding", PersistentVolumeBinding},
	{"VolumeAttachAndDetach", VolumeAttachAndDetach},
	{"DeploymentWriteCounts", DeploymentWriteCounts},
	{"WorkloadWriteCounts", WorkloadWriteCounts},
	{"HorizontalAutoscalingByCustomMetrics", HorizontalAutoscalingByCustomMetrics},
	{"DisruptionBudgetForCustomResource", DisruptionBudgetForCustomResource},
	{"AggregatedAPIKind", AggregatedAPIKind},
	{"CustomResourceOwnership", CustomResourceOwnership},
	{"NamespaceDeletionWithCustomResources", NamespaceDeletionWithCustomResources},
	{"ArgoCDDefinitions", ArgoCDDefinitions},
	{"CertManagerDefinitions", CertManagerDefinitions},
	{"PrometheusOperatorDefinitions", PrometheusOperatorDefinitions},
}

// Contained lists the scenarios that need real containers.
var Contained = []Scenario{
	{"ContainerEnvironment", ContainerEnvironment},
	{"LocalVolume", LocalVolume},
	{"StatefulSetDataPersistence", StatefulSetDataPersistence},
	{"SharedVolumes", SharedVolumes},
	{"PodTermination", PodTermination},
	{"PostStartHook", PostStartHook},
	{"DeletionBeforeContainerStart", DeletionBeforeContainerStart},
	{"CrashLoopBackOff", CrashLoopBackOff},
	{"ContainerRestartRules", ContainerRestartRules},
	{"RestartAllContainers", RestartAllContainers},
	{"HostPort", HostPort},
	{"ForceDeletedPodStillRunning", ForceDeletedPodStillRunning},
	{"ImageVolume", ImageVolume},
	{"ClusterTrustBundleVolume", ClusterTrustBundleVolume},
	{"IndexedJob", IndexedJob},
	{"CronJobRuns", CronJobRuns},
	{"ExtendedResources", ExtendedResources},
	{"Preemption", Preemption},
	{"EmptyDirSizeLimitEviction", EmptyDirSizeLimitEviction},
	{"NodeAPIAuthorization", NodeAPIAuthorization},
	{"KubeletMetrics", KubeletMetrics},
	{"PodMetrics", PodMetrics},
	{"HorizontalAutoscalingUnderLoad", HorizontalAutoscalingUnderLoad},
	{"InPlacePodResize", InPlacePodResize},
}

// Networked lists the scenarios that need Services and cluster DNS.
var Networked = []Scenario{
	{"DNSRecords", DNSRecords},
	{"InitContainersWaitForDNS", InitContainersWaitForDNS},
	{"ServiceTraffic", ServiceTraffic},
	{"ExternalTraffic", ExternalTraffic},
	{"PodToPodTraffic", PodToPodTraffic},
	{"RolloutUnderLoad", RolloutUnderLoad},
	{"ClusterDNSEviction", ClusterDNSEviction},
}

// RunAll runs the scenarios in order on the mesh.
func RunAll(t *testing.T, m mesh.Mesh, scenarios []Scenario) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) { s.Run(t, m) })
	}
}

// RunSideBySide runs the scenarios on the mesh, a few at a time: each has its own namespace, and waits more than it
// works.
func RunSideBySide(t *testing.T, m mesh.Mesh, scenarios []Scenario) {
	const atOnce = 4
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, s := range scenarios {
		all.Go(func() error {
			t.Run(s.Name, func(t *testing.T) { s.Run(t, m) })
			return nil
		})
	}
	_ = all.Wait() // none returns an error
}
