package monitoring

// Dashboards are all of them.
var Dashboards = []Dashboard{
	{Name: "api", Title: "API and store", Rows: []Row{
		{"Requests", []Panel{
			{"Requests", unitPerSecond,
				one(`sum by (verb) (rate(apiserver_request_total[$__rate_interval]))`, "{{verb}}")},
			{"Answers that are errors", unitPerSecond,
				one(`sum by (code) (rate(apiserver_request_total{code=~"4..|5.."}[$__rate_interval]))`, "{{code}}")},
			{"Latency, without what runs long", unitSeconds,
				latencies(`apiserver_request_duration_seconds_bucket{verb!~"WATCH|CONNECT"}`, "verb")},
			{"Requests in flight", unitCount,
				one(`sum by (request_kind) (apiserver_current_inflight_requests)`, "{{request_kind}}")},
		}},
		{"Priority and fairness", []Panel{
			{"Seats in use", unitCount, one(`sum by (priority_level) (apiserver_flowcontrol_current_executing_seats)`,
				"{{priority_level}}")},
			{"Requests that wait", unitCount,
				one(`sum by (priority_level) (apiserver_flowcontrol_current_inqueue_requests)`, "{{priority_level}}")},
			{"Requests refused", unitPerSecond,
				one(`sum by (priority_level, reason) `+
					`(rate(apiserver_flowcontrol_rejected_requests_total[$__rate_interval]))`,
					"{{priority_level}}, {{reason}}")},
			{"Watches", unitCount, one(`topk(10, sum by (resource) (apiserver_longrunning_requests{verb="WATCH"}))`,
				"{{resource}}")},
		}},
		{"Store", []Panel{
			{"Size", unitBytes, []Query{{`max(etcd_mvcc_db_total_size_in_bytes)`, "of the file"},
				{`max(etcd_mvcc_db_total_size_in_use_in_bytes)`, "in use"},
				{`max(etcd_server_quota_backend_bytes)`, "allowed"}}},
			{"Objects", unitCount, one(`topk(10, max by (resource) (apiserver_resource_objects))`, "{{resource}}")},
			{"Latency of its requests", unitSeconds, latencies(`etcd_request_duration_seconds_bucket`, "operation")},
			{"Writing to disk", unitSeconds, latencies(`etcd_disk_wal_fsync_duration_seconds_bucket`, "instance")},
		}},
	}},
	{Name: "workloads", Title: "Scheduler and controllers", Rows: []Row{
		{"Scheduler", []Panel{
			{"Pods that wait", unitCount, one(`max by (queue) (scheduler_pending_pods)`, "{{queue}}")},
			{"Attempts", unitPerSecond,
				one(`sum by (result) (rate(scheduler_schedule_attempts_total[$__rate_interval]))`, "{{result}}")},
			{"From the queue to the node, by attempts", unitSeconds,
				latencies(`scheduler_pod_scheduling_sli_duration_seconds_bucket`, "attempts")},
			{"Preempted Pods", unitPerSecond,
				one(`sum(rate(scheduler_preemption_victims_total[$__rate_interval]))`, "all")},
		}},
		{"Controllers and collectors", []Panel{
			{"Objects that wait", unitCount, one(`topk(10, sum by (name) (workqueue_depth))`, "{{name}}")},
			{"Passes", unitPerSecond, one(
				`topk(10, sum by (controller) (rate(controller_runtime_reconcile_total[$__rate_interval])))`,
				"{{controller}}")},
			{"Passes that fail", unitPerSecond, one(
				`sum by (controller) (rate(controller_runtime_reconcile_errors_total[$__rate_interval])) > 0`,
				"{{controller}}")},
			{"Longest pass under way", unitSeconds,
				one(`topk(10, max by (name) (workqueue_longest_running_processor_seconds))`, "{{name}}")},
			{"Pods deleted by controllers", unitPerSecond,
				one(`sum by (controller, reason) (rate(workload_controllers_pod_deletions_total[$__rate_interval]))`,
					"{{controller}}: {{reason}}")},
			{"Pods collected, and evicted for taints", unitPerSecond, []Query{
				{`sum by (reason) (rate(podgc_pod_deletions_total[$__rate_interval]))`, "{{reason}}"},
				{`sum(rate(podgc_taint_evictions_total[$__rate_interval]))`, "taints"}}},
		}},
		{"Daemons", []Panel{
			{"Who leads", unitCount, one(`sum by (instance) (leader_election_master_status)`, "{{instance}}")},
			{"Memory", unitBytes, one(`process_resident_memory_bytes{job=~"apiserver|kubelet|keelson-.*"}`,
				"{{job}} {{instance}}")},
			{"Processors", unitCount, one(
				`rate(process_cpu_seconds_total{job=~"apiserver|kubelet|keelson-.*"}[$__rate_interval])`,
				"{{job}} {{instance}}")},
			{"Events lost", unitPerSecond,
				one(`sum by (job, reason) (rate(keelson_events_dropped_total[$__rate_interval]))`,
					"{{job}}: {{reason}}")},
		}},
	}},
	{Name: "nodes", Title: "Nodes", Rows: []Row{
		{"Pods", []Panel{
			{"Pods that run", unitCount, one(`sum by (instance) (kubelet_running_pods)`, "{{instance}}")},
			{"Containers", unitCount,
				one(`sum by (container_state) (kubelet_running_containers)`, "{{container_state}}")},
			{"Start of a Pod", unitSeconds, latencies(`kubelet_pod_start_duration_seconds_bucket`, "instance")},
			{"Evictions", unitPerSecond,
				one(`sum by (instance, eviction_signal) (rate(kubelet_evictions[$__rate_interval]))`,
					"{{instance}}: {{eviction_signal}}")},
		}},
		{"Runtime", []Panel{
			{"Calls", unitPerSecond,
				one(`sum by (operation_type) (rate(kubelet_runtime_operations_total[$__rate_interval]))`,
					"{{operation_type}}")},
			{"Calls that fail", unitPerSecond,
				one(`sum by (operation_type) (rate(kubelet_runtime_operations_errors_total[$__rate_interval]))`,
					"{{operation_type}}")},
			{"Latency of calls", unitSeconds,
				latencies(`kubelet_runtime_operations_duration_seconds_bucket`, "operation_type")},
			{"Since the runtime was last heard of", unitSeconds,
				one(`time() - kubelet_pleg_last_seen_seconds`, "{{instance}}")},
		}},
		{"What is used", []Panel{
			{"Processors", unitCount, one(`sum by (instance) (rate(node_cpu_usage_seconds_total[$__rate_interval]))`,
				"{{instance}}")},
			{"Memory", unitBytes, one(`sum by (instance) (node_memory_working_set_bytes)`, "{{instance}}")},
			{"Volumes: used", unitShare, one(
				`topk(10, max by (namespace, persistentvolumeclaim) (kubelet_volume_stats_used_bytes / `+
					`kubelet_volume_stats_capacity_bytes))`, "{{namespace}}/{{persistentvolumeclaim}}")},
			{"Probes that fail", unitPerSecond, one(
				`topk(10, sum by (namespace, pod, probe_type) `+
					`(rate(prober_probe_total{result="failed"}[$__rate_interval])))`,
				"{{namespace}}/{{pod}} {{probe_type}}")},
		}},
		{"Services and certificates", []Panel{
			{"Programming the kernel", unitSeconds,
				latencies(`nodeagent_service_proxy_sync_duration_seconds_bucket`, "scope")},
			{"Certificates: time left", unitSeconds, []Query{
				{`min by (instance) (kubelet_certificate_manager_client_ttl_seconds)`, "{{instance}} client"},
				{`min by (instance) (kubelet_certificate_manager_server_ttl_seconds)`, "{{instance}} serving"}}},
		}},
	}},
}
