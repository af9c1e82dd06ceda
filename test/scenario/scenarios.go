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
	{"Rollout", Rollout},
	{"RollingUpdateBounds", RollingUpdateBounds},
	{"ServiceRollout", ServiceRollout},
	{"StatefulSetInOrder", StatefulSetInOrder},
	{"StatefulSetClaims", StatefulSetClaims},
	{"EphemeralVolume", EphemeralVolume},
	{"ClaimedDevices", ClaimedDevices},
	{"CascadeBackground", CascadeBackground},
	{"CascadeForeground", CascadeForeground},
	{"CascadeCircle", CascadeCircle},
	{"CascadeOrphan", CascadeOrphan},
	{"NamespaceDeletion", NamespaceDeletion},
	{"NodeRights", NodeRights},
	{"TaintByHand", TaintByHand},
	{"Gang", Gang},
	{"Recovery", Recovery},
}

// Simulated lists the scenarios that need three nodes for themselves.
var Simulated = []Scenario{
	{"GangPreemption", GangPreemption},
	{"BudgetExample", BudgetExample},
	{"DrainsOneByOne", DrainsOneByOne},
	{"RolloutUnderBudget", RolloutUnderBudget},
	{"StatefulEviction", StatefulEviction},
	{"Volumes", Volumes},
	{"AttachedVolume", AttachedVolume},
	{"Writes", Writes},
	{"OwnersWrite", OwnersWrite},
	{"AutoscaledByOthers", AutoscaledByOthers},
	{"BudgetOfOthers", BudgetOfOthers},
	{"KindOfOthers", KindOfOthers},
	{"CustomResourceOwns", CustomResourceOwns},
	{"CustomResourceInNamespace", CustomResourceInNamespace},
	{"ArgoCDDefinitions", ArgoCDDefinitions},
	{"CertManagerDefinitions", CertManagerDefinitions},
	{"PrometheusOperatorDefinitions", PrometheusOperatorDefinitions},
}

// Contained lists the scenarios that need real containers.
var Contained = []Scenario{
	{"Inside", Inside},
	{"LocalVolume", LocalVolume},
	{"StatefulSetData", StatefulSetData},
	{"Together", Together},
	{"Termination", Termination},
	{"Hooked", Hooked},
	{"NeverRan", NeverRan},
	{"CrashLoop", CrashLoop},
	{"RestartedByRule", RestartedByRule},
	{"RestartedTogether", RestartedTogether},
	{"HostPort", HostPort},
	{"ForcedNamesake", ForcedNamesake},
	{"ImageVolume", ImageVolume},
	{"TrustBundles", TrustBundles},
	{"JobIndexed", JobIndexed},
	{"CronJobRuns", CronJobRuns},
	{"ExtendedResources", ExtendedResources},
	{"Preemption", Preemption},
	{"Evicted", Evicted},
	{"NodeAPI", NodeAPI},
	{"KubeletMetrics", KubeletMetrics},
	{"Top", Top},
	{"AutoscaledUnderLoad", AutoscaledUnderLoad},
	{"Resize", Resize},
}

// Networked lists the scenarios that need Services and cluster DNS.
var Networked = []Scenario{
	{"Names", Names},
	{"WaitsForNames", WaitsForNames},
	{"Traffic", Traffic},
	{"Outside", Outside},
	{"Peers", Peers},
	{"UpdateUnderLoad", UpdateUnderLoad},
	{"EvictDNS", EvictDNS},
}

// RunAll runs the scenarios one after the other on the mesh.
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
