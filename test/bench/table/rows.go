package main

// row is one line of the page. key is "<benchmark> <unit>".
type row struct {
	what, key, target, usual string
}

// rows are in the order of the page. Targets are those of the design, usual figures those of Kubernetes 1.36.2's
// kube-apiserver, etcd, kube-scheduler and kube-controller-manager.
var rows = []row{
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
	{"Deployment create to available, 50 x 100, per Pod, everything, CPU ms", "Deployment/Create all-cpu-ms/pod", "3.0",
		"8.3"},
	{"same, workload-controllers alone, CPU ms", "Deployment/Create workload-controllers-cpu-ms/pod", "0.4", "0.79"},
	{"rolling update, 50 x 100, per Pod, everything, CPU ms", "Deployment/RollingUpdate all-cpu-ms/pod", "5.5", "14.6"},
	{"same, workload-controllers alone, CPU ms", "Deployment/RollingUpdate workload-controllers-cpu-ms/pod", "",
		"1.87"},
	{"cascade delete, 50 x 100, per Pod, everything, CPU ms", "Deployment/CascadeDelete all-cpu-ms/pod", "2.0", "5.9"},
	{"DaemonSet create to available, 5,000 nodes, per Pod, everything, CPU ms", "DaemonSet/Create all-cpu-ms/pod", "",
		""},
	{"same, workload-controllers alone, CPU ms", "DaemonSet/Create workload-controllers-cpu-ms/pod", "", ""},
	{"rolling update, 5,000 nodes, per Pod, everything, CPU ms", "DaemonSet/RollingUpdate all-cpu-ms/pod", "", ""},
	{"same, workload-controllers alone, CPU ms", "DaemonSet/RollingUpdate workload-controllers-cpu-ms/pod", "", ""},
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
	{"Pod start, create to ready, ms", "PodStart create-to-ready-ms", "", ""},
	{"the same Pod by bare CRI calls, ms", "PodStart bare-cri-ms", "", ""},
	{"ratio of the two", "PodStart ratio", "1.10", ""},
}
