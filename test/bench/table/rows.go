package main

import "slices"

// row is one line of the page. key is "<benchmark> <unit>".
type row struct {
	what, key, target, usual string
}

// rows are in the order of the page. What begins with "same" is of the row above that does not. Targets are those of
// the design, usual figures those of Kubernetes 1.36.2's kube-apiserver, etcd, kube-scheduler and
// kube-controller-manager.
var rows = slices.Concat(requests, lives, processes)

// beside is what stands beside the figure of one measure: what it is to be, and what it usually is; "" where that is
// not known.
type beside struct{ target, usual string }

// life are the rows of a phase of workloads' life, by Pod.
func life(what, phase string, all, controllers beside) []row {
	return []row{
		{what + ", everything, CPU ms", phase + " all-cpu-ms/pod", all.target, all.usual},
		{"same, workload-controllers alone, CPU ms", phase + " workload-controllers-cpu-ms/pod", controllers.target,
			controllers.usual},
		{"same, everything, KiB allocated", phase + " all-alloc-KiB/pod", "", ""},
		{"same, writes", phase + " writes/pod", "", ""},
		{"same, store calls", phase + " store-calls/pod", "", ""},
		{"same, events to watchers", phase + " watch-events/pod", "", ""},
		{"same, of these sent again", phase + " replayed-events/pod", "", ""},
	}
}

var requests = []row{
	{"ConfigMap create, server and store, CPU ms", "API/ConfigMapCreate all-cpu-ms/op", "0.5", "1.13"},
	{"ConfigMap update, server and store, CPU ms", "API/ConfigMapUpdate all-cpu-ms/op", "0.6", "1.32"},
	{"Pod create, server and store, CPU ms", "API/PodCreate all-cpu-ms/op", "0.7", "1.53"},
	{"Pod update, server and store, CPU ms", "API/PodUpdate all-cpu-ms/op", "0.8", "1.90"},
	{"Pod delete, server and store, CPU ms", "API/PodDelete all-cpu-ms/op", "0.6", "2.32"},
	{"place a Pod, 1,000 nodes, scheduler, CPU ms", "Placement/nodes=1000 scheduler-cpu-ms/pod", "", "1.72"},
	{"place a Pod, 1,000 nodes, everything, CPU ms", "Placement/nodes=1000 all-cpu-ms/pod", "", "5.24"},
	{"place a Pod, 5,000 nodes, scheduler, CPU ms", "Placement/nodes=5000 scheduler-cpu-ms/pod", "0.25", "2.17"},
	{"place a Pod, 5,000 nodes, everything, CPU ms", "Placement/nodes=5000 all-cpu-ms/pod", "1.8", "5.83"},
	{"Pods placed per second, 5,000 nodes", "Placement/nodes=5000 pods/s", "", "275"},
	{"memory of all, 5,000 nodes and 10,000 Pods, MiB", "Placement/nodes=5000 all-MiB", "600", "1886"},
}

var lives = slices.Concat(
	life("50 Deployments x 100, create to available, per Pod", "Deployment/50x100/Create", beside{"3.0", "8.3"},
		beside{"0.4", "0.79"}),
	life("50 x 100, rolling update, per Pod", "Deployment/50x100/RollingUpdate", beside{"5.5", "14.6"},
		beside{"", "1.87"}),
	life("50 x 100, cascade delete, per Pod", "Deployment/50x100/CascadeDelete", beside{"2.0", "5.9"}, beside{}),
	life("one Deployment of 10,000, create to available, per Pod", "Deployment/1x10000/Create", beside{},
		beside{"0.4", ""}),
	life("the 10,000, rolling update, per Pod", "Deployment/1x10000/RollingUpdate", beside{}, beside{"0.4", ""}),
	life("the 10,000, cascade delete, per Pod", "Deployment/1x10000/CascadeDelete", beside{"2.0", ""}, beside{}),
	life("DaemonSet on 5,000 nodes, create to available, per Pod", "DaemonSet/Create", beside{}, beside{}),
	life("DaemonSet on 5,000 nodes, rolling update, per Pod", "DaemonSet/RollingUpdate", beside{}, beside{}),
	life("20 StatefulSets x 20 in order, create to available, per Pod", "StatefulSet/Ordered/Create",
		beside{"", "14.77"}, beside{"1.19", "2.38"}),
	life("20 x 20 in order, rolling update, per Pod", "StatefulSet/Ordered/RollingUpdate", beside{"", "25.00"},
		beside{"2.18", "4.37"}),
	life("20 StatefulSets x 20 in parallel, create to available, per Pod", "StatefulSet/Parallel/Create",
		beside{"", "9.00"}, beside{"0.47", "0.95"}),
	life("100 Jobs x 50, create to complete, per Pod", "Job/Run", beside{"5.0", "13.6"}, beside{"", "1.37"}),
	life("100 Jobs x 50, cascade delete, per Pod", "Job/CascadeDelete", beside{"", "4.62"}, beside{"", "0.88"}),
	life("1,000 CronJobs due in one minute, until their Jobs are complete, each", "CronJob/Due", beside{}, beside{}),
)

var processes = []row{
	{"idle, one node: apiserver, MiB", "Idle apiserver-MiB", "", ""},
	{"idle, one node: scheduler, MiB", "Idle scheduler-MiB", "", ""},
	{"idle, one node: workload-controllers, MiB", "Idle workload-controllers-MiB", "", ""},
	{"idle, one node: podgc, MiB", "Idle podgc-MiB", "", ""},
	{"idle, one node: nodeagent, MiB", "Idle nodeagent-MiB", "50", ""},
	{"idle, one node: all daemons, MiB", "Idle all-MiB", "500", ""},
	{"idle, one node: apiserver, % of a core", "Idle apiserver-cpu-percent", "", ""},
	{"idle, one node: scheduler, % of a core", "Idle scheduler-cpu-percent", "", ""},
	{"idle, one node: workload-controllers, % of a core", "Idle workload-controllers-cpu-percent", "", ""},
	{"idle, one node: podgc, % of a core", "Idle podgc-cpu-percent", "", ""},
	{"idle, one node: nodeagent, % of a core", "Idle nodeagent-cpu-percent", "", ""},
	{"idle, one node: all daemons, % of a core", "Idle all-cpu-percent", "5", ""},
	{"heartbeats of 5,000 nodes: apiserver, % of a core", "Heartbeats apiserver-cpu-percent", "", ""},
	{"heartbeats of 5,000 nodes: podgc, % of a core", "Heartbeats podgc-cpu-percent", "", ""},
	{"heartbeats of 5,000 nodes: all daemons, % of a core", "Heartbeats all-cpu-percent", "", ""},
	{"Pod start, create to ready, ms", "PodStart create-to-ready-ms", "", ""},
	{"the same Pod by bare CRI calls, ms", "PodStart bare-cri-ms", "", ""},
	{"ratio of the two", "PodStart ratio", "1.10", ""},
}
