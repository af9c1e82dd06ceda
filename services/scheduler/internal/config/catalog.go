package config

import (
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/balancedallocation"
	"keelson.dev/services/scheduler/internal/rules/dynamicresources"
	"keelson.dev/services/scheduler/internal/rules/imagelocality"
	"keelson.dev/services/scheduler/internal/rules/interpodaffinity"
	"keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/nodename"
	"keelson.dev/services/scheduler/internal/rules/nodeports"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rules/nodeunschedulable"
	"keelson.dev/services/scheduler/internal/rules/nodevolumelimits"
	"keelson.dev/services/scheduler/internal/rules/podtopologyspread"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
	"keelson.dev/services/scheduler/internal/rules/volumebinding"
	"keelson.dev/services/scheduler/internal/rules/volumerestrictions"
	"keelson.dev/services/scheduler/internal/rules/volumezone"
)

// catalog returns all rules with their default weights, in the order in which they judge. What a node is comes before
// what room it has: a node that the Pod does not ask for is counted for that reason alone.
func catalog() []rules.Rule {
	return []rules.Rule{
		dynamicresources.Rule(),
		nodename.Rule(),
		nodeaffinity.Rule(),
		nodeunschedulable.Rule(),
		tainttoleration.Rule(),
		volumerestrictions.Rule(),
		volumebinding.Rule(noderesourcesfit.RequestedToCapacityRatio(bindingLine())),
		volumezone.Rule(),
		nodeports.Rule(),
		noderesourcesfit.Rule(noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights()}),
		nodevolumelimits.Rule(),
		podtopologyspread.Rule(podtopologyspread.SystemDefaults()),
		interpodaffinity.Rule(interpodaffinity.Default()),
		balancedallocation.Rule(),
		imagelocality.Rule(),
	}
}

// fixed are names of the field for what the scheduler always does, outside of the rules.
var fixed = []string{"DefaultBinder", "GangScheduling", "PodGroupPodsCount", "PrioritySort", "SchedulingGates",
	"TopologyPlacement"}

// absent are plugins of the field that are not here, and why none is needed.
var absent = map[string]string{
	"AzureDiskLimits":       inOne,
	"CinderLimits":          inOne,
	"DeferredPodScheduling": "no Pod is preempted for one that is resized",
	"EBSLimits":             inOne,
	"GCEPDLimits":           inOne,
	"NodeDeclaredFeatures":  "nodes declare no features",
}

const inOne = "NodeVolumeLimits counts the volumes of every driver"

// preemption is the field's name for the taking of room from Pods of lower priority.
const preemption = "DefaultPreemption"

// DefaultProfile returns all rules for Pods that name no scheduler.
func DefaultProfile() rules.Profile {
	return rules.Profile{Name: defaultProfile, Rules: catalog(), Preempts: true, BindTimeout: defaultBindTimeout}
}
