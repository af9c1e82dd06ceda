package main

import "slices"

// row is one line of the page. key is "<benchmark> <unit>", or two of these with " / " between them for the ratio of
// both; target is "" where none was set.
type row struct {
	what, key, target string
}

// rows are in the order of the page. What begins with "same" is of the row above that does not. Targets are those of
// the design.
var rows = slices.Concat(requests, scheduling, lives, services, processes, defined("none", "no kinds defined"),
	defined("500", "500 kinds defined, each with 10 objects"), idlePods("100"), idlePods("250"),
	starts("1", "a Pod", "1.10"), starts("10", "10 Pods at once, each", ""), starts("50", "50 Pods at once, each", ""))

// life are the rows of a phase of workloads' life, by Pod, with the targets of all CPU time and of
// workload-controllers' part.
func life(what, phase, all, controllers string) []row {
	return []row{
		{what + ", everything, CPU ms", phase + " all-cpu-ms/pod", all},
		{"same, apiserver alone, CPU ms", phase + " apiserver-cpu-ms/pod", ""},
		{"same, scheduler alone, CPU ms", phase + " scheduler-cpu-ms/pod", ""},
		{"same, workload-controllers alone, CPU ms", phase + " workload-controllers-cpu-ms/pod", controllers},
		{"same, podgc alone, CPU ms", phase + " podgc-cpu-ms/pod", ""},
		{"same, everything, KiB allocated", phase + " all-alloc-KiB/pod", ""},
		{"same, writes", phase + " writes/pod", ""},
		{"same, of these patches", phase + " patches/pod", ""},
		{"same, gets", phase + " gets/pod", ""},
		{"same, lists", phase + " lists/pod", ""},
		{"same, store calls", phase + " store-calls/pod", ""},
		{"same, events to watchers", phase + " watch-events/pod", ""},
		{"same, of these sent again", phase + " replayed-events/pod", ""},
		{"same, watches ended because their clients were slow, in all", phase + " terminated-watches", ""},
	}
}

var requests = []row{
	{"ConfigMap create, server and store, CPU ms", "API/ConfigMapCreate all-cpu-ms/op", "0.5"},
	{"ConfigMap update, server and store, CPU ms", "API/ConfigMapUpdate all-cpu-ms/op", "0.6"},
	{"Pod create, server and store, CPU ms", "API/PodCreate all-cpu-ms/op", "0.7"},
	{"Pod update, server and store, CPU ms", "API/PodUpdate all-cpu-ms/op", "0.8"},
	{"Pod delete, server and store, CPU ms", "API/PodDelete all-cpu-ms/op", "0.6"},
	{"ConfigMap create as JSON, server and store, CPU ms", "API/ConfigMapCreateJSON all-cpu-ms/op", ""},
	{"custom object create as JSON, server and store, CPU ms", "API/WidgetCreateJSON all-cpu-ms/op", ""},
	{"same, to a ConfigMap's, ratio",
		"API/WidgetCreateJSON all-cpu-ms/op / API/ConfigMapCreateJSON all-cpu-ms/op", "1.3"},
	{"Pod create by an account, with priority and fairness against without, ratio",
		"PriorityAndFairness/account median-ratio", "1.05"},
	{"place a Pod, 1,000 nodes, scheduler, CPU ms", "Placement/nodes=1000 scheduler-cpu-ms/pod", ""},
	{"place a Pod, 1,000 nodes, apiserver, CPU ms", "Placement/nodes=1000 apiserver-cpu-ms/pod", ""},
	{"place a Pod, 1,000 nodes, everything, CPU ms", "Placement/nodes=1000 all-cpu-ms/pod", ""},
	{"place a Pod, 5,000 nodes, scheduler, CPU ms", "Placement/nodes=5000 scheduler-cpu-ms/pod", "0.25"},
	{"place a Pod, 5,000 nodes, apiserver, CPU ms", "Placement/nodes=5000 apiserver-cpu-ms/pod", ""},
	{"place a Pod, 5,000 nodes, everything, CPU ms", "Placement/nodes=5000 all-cpu-ms/pod", "1.8"},
	{"watches ended because their clients were slow, 1,000 nodes", "Placement/nodes=1000 terminated-watches", ""},
	{"watches ended because their clients were slow, 5,000 nodes", "Placement/nodes=5000 terminated-watches", ""},
	{"Pods placed per second, 5,000 nodes", "Placement/nodes=5000 pods/s", ""},
	{"peak memory of all, 5,000 nodes and 10,000 Pods, MiB", "Placement/nodes=5000 all-peak-MiB", "600"},
	{"same, at the end", "Placement/nodes=5000 all-MiB", ""},
	{"same, at the end, without what is in files (programs, the store)", "Placement/nodes=5000 all-anonymous-MiB", ""},
}

// placed are the rows of Pods that get a node, or are refused one, with the targets of the scheduler and of everything.
func placed(what, benchmark, unit, scheduler, all string) []row {
	return []row{
		{what + ", scheduler, CPU ms", benchmark + " scheduler-cpu-ms/" + unit, scheduler},
		{"same, apiserver, CPU ms", benchmark + " apiserver-cpu-ms/" + unit, ""},
		{"same, everything, CPU ms", benchmark + " all-cpu-ms/" + unit, all},
		{"same, watches ended because their clients were slow, in all", benchmark + " terminated-watches", ""},
	}
}

var scheduling = slices.Concat(
	placed("place a Pod, 5,000 nodes, zone spread", "Scheduling/ZoneSpread", "pod", "0.3", "2.0"),
	placed("place a Pod, 5,000 nodes, hostname anti-affinity", "Scheduling/AntiAffinity", "pod", "0.3", ""),
	placed("place a Pod, 5,000 nodes, preferred affinity", "Scheduling/PreferredAffinity", "pod", "", ""),
	placed("place a Pod, 5,000 nodes, 1,000 different shapes", "Scheduling/Shapes", "pod", "", ""),
	placed("refuse a Pod, 5,000 nodes, 10,000 that fit nowhere", "Scheduling/Backlog", "pod", "", ""),
	placed("a node changes while these wait, each", "Scheduling/BacklogChurn", "change", "", ""),
	placed("preempt for a Pod, 500 full nodes", "Preemption/nodes=500", "pod", "1.0", ""),
	placed("preempt for a Pod, 5,000 full nodes", "Preemption/nodes=5000", "pod", "", ""),
	placed("place a Pod by the node's name, 15,000 nodes", "Pinned/nodes=15000", "pod", "", ""),
	[]row{
		{"decide on a Pod, 5,000 nodes, identical Pods, in process, us", "PlaceIdentical/nodes=5000 us/pod", "25"},
		{"same, 100,000 nodes to 1,000, ratio",
			"PlaceIdentical/nodes=100000 us/pod / PlaceIdentical/nodes=1000 us/pod", "3"},
		{"same, 5,000 nodes, zone and hostname spread, us", "PlaceSpread/hard/nodes=5000 us/pod", "100"},
		{"same, hostname anti-affinity, us", "PlaceSociable/apart/nodes=5000 us/pod", "100"},
		{"same, preferred affinity, us", "PlaceSociable/preferred/nodes=5000 us/pod", "100"},
		{"place a Pod, 100,000 nodes, in process, CPU us", "Scale/nodes=100000 cpu-us/pod", ""},
		{"100,000 nodes and 1,000,000 Pods, in process, MiB", "Scale/nodes=100000 MiB", ""},
		{"place a Pod, 1,000,000 nodes, in process, CPU us", "Scale/nodes=1000000 cpu-us/pod", ""},
		{"1,000,000 nodes and 1,000,000 Pods, in process, MiB", "Scale/nodes=1000000 MiB", "4096"},
		{"preempt for a Pod, 5,000 full nodes, in process, CPU us", "Preempt/nodes=5000 cpu-us/pod", "1000"},
		{"a selector that nobody had before, 1,000,000 Pods, in process, us", "NewTerm/pods=1000000 us/op", ""},
	},
)

var services = []row{
	{"5,000 Services x 10 endpoints, the whole table, in process, CPU us", "Services/whole cpu-us/op", ""},
	{"same, found as it should be, CPU us", "Services/taken-over cpu-us/op", ""},
	{"same, one endpoint changes, CPU us", "Services/change cpu-us/op", ""},
	{"same, memory kept, MiB", "Services/memory MiB", ""},
	{"5,000 Services x 10 endpoints, nodeagent from its start until all is carried, CPU ms",
		"ServiceProxy/whole nodeagent-cpu-ms", ""},
	{"same, of this the whole table, ms", "ServiceProxy/whole sync-ms", ""},
	{"same, nodeagent, MiB", "ServiceProxy/whole nodeagent-MiB", ""},
	{"same, one endpoint changes, nodeagent, CPU ms", "ServiceProxy/change nodeagent-cpu-ms/change", ""},
	{"same, of this the table, ms", "ServiceProxy/change sync-ms", ""},
}

var lives = slices.Concat(
	life("50 Deployments x 100, create to available, per Pod", "Deployment/50x100/Create", "3.0", "0.4"),
	life("50 x 100, rolling update, per Pod", "Deployment/50x100/RollingUpdate", "5.5", "0.94"),
	life("50 x 100, cascade delete, per Pod", "Deployment/50x100/CascadeDelete", "2.0", "0.49"),
	life("one Deployment of 10,000, create to available, per Pod", "Deployment/1x10000/Create", "", "0.4"),
	life("the 10,000, rolling update, per Pod", "Deployment/1x10000/RollingUpdate", "", "0.4"),
	life("the 10,000, cascade delete, per Pod", "Deployment/1x10000/CascadeDelete", "2.0", ""),
	life("DaemonSet on 5,000 nodes, create to available, per Pod", "DaemonSet/Create", "", ""),
	life("DaemonSet on 5,000 nodes, rolling update, per Pod", "DaemonSet/RollingUpdate", "", ""),
	life("20 StatefulSets x 20 in order, create to available, per Pod", "StatefulSet/Ordered/Create", "", "1.19"),
	life("20 x 20 in order, rolling update, per Pod", "StatefulSet/Ordered/RollingUpdate", "", "2.18"),
	life("20 StatefulSets x 20 in parallel, create to available, per Pod", "StatefulSet/Parallel/Create", "", "0.47"),
	life("100 Jobs x 50, create to complete, per Pod", "Job/Run", "5.0", "0.69"),
	life("100 Jobs x 50, cascade delete, per Pod", "Job/CascadeDelete", "", "0.44"),
	life("1,000 CronJobs due in one minute, until their Jobs are complete, each", "CronJob/Due", "", ""),
)

var processes = []row{
	{"idle, one node: apiserver, MiB", "Idle apiserver-MiB", ""},
	{"idle, one node: scheduler, MiB", "Idle scheduler-MiB", ""},
	{"idle, one node: workload-controllers, MiB", "Idle workload-controllers-MiB", ""},
	{"idle, one node: podgc, MiB", "Idle podgc-MiB", ""},
	{"idle, one node: nodeagent, MiB", "Idle nodeagent-MiB", "50"},
	{"idle, one node: all daemons, MiB", "Idle all-MiB", "500"},
	{"idle, one node: apiserver, % of a core", "Idle apiserver-cpu-percent", ""},
	{"idle, one node: scheduler, % of a core", "Idle scheduler-cpu-percent", ""},
	{"idle, one node: workload-controllers, % of a core", "Idle workload-controllers-cpu-percent", ""},
	{"idle, one node: podgc, % of a core", "Idle podgc-cpu-percent", ""},
	{"idle, one node: nodeagent, % of a core", "Idle nodeagent-cpu-percent", ""},
	{"idle, one node: all daemons, % of a core", "Idle all-cpu-percent", "5"},
	{"heartbeats of 5,000 nodes: apiserver, % of a core", "Heartbeats apiserver-cpu-percent", ""},
	{"heartbeats of 5,000 nodes: podgc, % of a core", "Heartbeats podgc-cpu-percent", ""},
	{"heartbeats of 5,000 nodes: all daemons, % of a core", "Heartbeats all-cpu-percent", ""},
}

// defined are the rows of an apiserver with so many kinds that were defined.
func defined(definitions, what string) []row {
	benchmark := "Definitions/" + definitions
	return []row{
		{what + ": apiserver, MiB", benchmark + " apiserver-MiB", ""},
		{"same, without what is in files", benchmark + " apiserver-anonymous-MiB", ""},
		{"same, from its start until it is ready, median, ms", benchmark + " start-ms", ""},
		{"same, from a definition until kubectl knows its kind, median, ms", benchmark + " known-ms", ""},
	}
}

// idlePods are the rows of a nodeagent whose Pods do nothing.
func idlePods(pods string) []row {
	benchmark := "IdlePods/pods=" + pods
	return []row{
		{pods + " idle Pods: nodeagent, MiB", benchmark + " nodeagent-MiB", ""},
		{pods + " idle Pods: nodeagent, % of a core", benchmark + " nodeagent-cpu-percent", ""},
	}
}

// starts are the rows of real Pods that start and stop, so many at once.
func starts(atOnce, what, target string) []row {
	benchmark := "PodStart/at-once=" + atOnce
	return []row{
		{"start of " + what + ", create to ready, median, ms", benchmark + " ready-p50-ms", ""},
		{"same, one of a hundred takes longer, ms", benchmark + " ready-p99-ms", ""},
		{"same, by bare CRI calls, median, ms", benchmark + " bare-start-p50-ms", ""},
		{"same, by bare CRI calls, one of a hundred takes longer, ms", benchmark + " bare-start-p99-ms", ""},
		{"same, ratio of the medians", benchmark + " start-ratio", target},
		{"stop of " + what + ", delete to gone, median, ms", benchmark + " gone-p50-ms", ""},
		{"same, one of a hundred takes longer, ms", benchmark + " gone-p99-ms", ""},
		{"same, by bare CRI calls, median, ms", benchmark + " bare-stop-p50-ms", ""},
		{"same, by bare CRI calls, one of a hundred takes longer, ms", benchmark + " bare-stop-p99-ms", ""},
		{"same, ratio of the medians", benchmark + " stop-ratio", target},
		{"same, writes of its status from start to end", benchmark + " status-writes/pod", ""},
	}
}
