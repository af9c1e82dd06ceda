package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"keelson.dev/services/apiserver/internal/authz/node"
)

// daemonRoles are the roles of the mesh's own daemons; docs/architecture.md lists their identities.
var daemonRoles = []role{
	{
		name:  "system:kube-scheduler",
		users: []string{user.KubeScheduler},
		rules: rules(events, []rbacv1.PolicyRule{
			leases,
			rule(read, "", "namespaces", "nodes", "persistentvolumes", "replicationcontrollers", "services"),
			rule(verbs("delete", "get", "list", "watch"), "", "pods"),
			rule(verbs("create"), "", "bindings", "pods/binding"),
			rule(verbs("patch", "update"), "", "pods/status"),
			rule(verbs("get", "list", "patch", "update", "watch"), "", "persistentvolumeclaims"),
			rule(read, "apps", "replicasets", "statefulsets"),
			rule(read, "policy", "poddisruptionbudgets"),
			rule(read, "scheduling.k8s.io", "priorityclasses"),
			rule(read, "storage.k8s.io", "csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"),
		}),
	},
	{
		name:  "system:keelson:workload-controllers",
		users: []string{"system:keelson:workload-controllers"},
		rules: rules(events, []rbacv1.PolicyRule{
			leases,
			rule(read, "", "namespaces", "nodes", "persistentvolumes", "secrets", "services"),
			rule(readWrite, "", "pods"),
			rule(verbs("patch", "update"), "", "pods/status", "replicationcontrollers/status"),
			rule(readWrite, "", "configmaps", "endpoints", "persistentvolumeclaims", "replicationcontrollers", "serviceaccounts"),
			rule(verbs("update"), "", "pods/finalizers", "replicationcontrollers/finalizers"),
			rule(readWrite, "apps", "controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
			rule(verbs("patch", "update"), "apps", "daemonsets/status", "deployments/status", "replicasets/status", "statefulsets/status"),
			rule(verbs("update"), "apps", "daemonsets/finalizers", "deployments/finalizers", "replicasets/finalizers", "statefulsets/finalizers"),
			rule(readWrite, "batch", "cronjobs", "jobs"),
			rule(verbs("patch", "update"), "batch", "cronjobs/status", "jobs/status"),
			rule(verbs("update"), "batch", "cronjobs/finalizers", "jobs/finalizers"),
			rule(verbs("get", "update"), "*", "*/scale"),
			rule(readWrite, "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
			rule(readWrite, "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
			rule(readWrite, "discovery.k8s.io", "endpointslices"),
		}),
	},
	{
		// It collects objects of every kind, also of kinds that are added later.
		name:  "system:keelson:podgc",
		users: []string{"system:keelson:podgc"},
		rules: rules(events, []rbacv1.PolicyRule{
			leases,
			rule(verbs("delete", "deletecollection", "get", "list", "patch", "update", "watch"), "*", "*"),
			rule(verbs("update"), "", "namespaces/finalize", "namespaces/status"),
			rule(verbs("patch", "update"), "", "nodes/status", "pods/status"),
		}),
	},
	{
		// Nodes have these rights by the Node authorizer, which bounds them. The role is there for those who look for it.
		name:   "system:node",
		vacant: true,
		rules:  node.Rules,
	},
	{
		name:  "system:keelson:apiserver",
		users: []string{"system:keelson:apiserver"},
		rules: []rbacv1.PolicyRule{
			rule(read, "", "nodes"),
			rule(verbs("*"), "", "nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"),
		},
	},
}
