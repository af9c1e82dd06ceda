package bootstrap

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"keelson.dev/kit/rights"
	"keelson.dev/kit/trustbundle"
	"keelson.dev/services/apiserver/internal/authz/node"
)

// daemonRoles are the roles of the mesh's own daemons; docs/explanation/architecture.md lists their identities. Those
// of the daemons that declare what they do grant just that, which test/integration checks.
var daemonRoles = []role{
	{
		name:  "system:kube-scheduler",
		users: []string{user.KubeScheduler},
		rules: rules(rights.Leases(), []rbacv1.PolicyRule{
			rights.Events,
			rule(verbs("list", "watch"), "", "namespaces", "nodes", "replicationcontrollers", "services"),
			rule(verbs("delete", "get", "list", "watch"), "", "pods"),
			rule(verbs("list", "watch"), "apps", "replicasets", "statefulsets"),
			rule(verbs("list", "watch"), "policy", "poddisruptionbudgets"),
			rule(verbs("list", "patch", "watch"), "", "persistentvolumeclaims", "persistentvolumes"),
			rule(verbs("list", "watch"), "storage.k8s.io", "csidrivers", "csinodes", "csistoragecapacities",
				"storageclasses", "volumeattachments"),
			rule(verbs("create"), "", "pods/binding"),
			rule(verbs("patch"), "", "pods/status"),
			rule(verbs("list", "watch"), "resource.k8s.io", "resourceclaims"),
			rule(verbs("list", "watch"), "scheduling.k8s.io", "podgroups"),
			rule(verbs("patch"), "scheduling.k8s.io", "podgroups/status"),
		}),
	},
	{
		name:     "system:keelson:workload-controllers",
		users:    []string{"system:keelson:workload-controllers"},
		confined: true,
		rules: rules(leases("workload-controllers", "attachdetach", "cronjob", "csrapproving", "csrcleaner",
			"csrsigning", "daemonset", "deployment", "disruption", "endpoint", "endpointslice",
			"endpointslicemirroring", "ephemeralvolume", "horizontalpodautoscaler", "job", "nodeipam",
			"persistentvolume", "replicaset", "replicationcontroller", "resourceclaim", "resourcequota", "rootca",
			"serviceaccount", "servicecidr", "statefulset", "trustbundle"),
			certificates(),
			[]rbacv1.PolicyRule{
				rights.Events,
				rule(verbs("list", "watch"), "", "namespaces", "services"),
				rule(verbs("get", "list", "patch", "watch"), "", "nodes"),
				rule(verbs("patch"), "", "nodes/status"),
				// A quota may count objects of any kind, also of kinds that are added later.
				rule(verbs("list", "watch"), "*", "*"),
				rule(verbs("update"), "", "resourcequotas/status"),
				rule(verbs("patch"), "", "pods/status"),
				rule(verbs("create", "delete", "list", "update", "watch"), "", "endpoints"),
				rule(verbs("create", "delete", "list", "update", "watch"), "discovery.k8s.io", "endpointslices"),
				rule(verbs("update"), "", "endpoints/finalizers", "pods/finalizers", "services/finalizers"),
				rule(verbs("create", "delete", "get", "list", "patch", "watch"), "", "pods"),
				rule(verbs("create", "list", "update", "watch"), "", "configmaps"),
				rule(verbs("create", "get", "list", "update", "watch"), "", "persistentvolumeclaims"),
				rule(verbs("create", "delete", "get", "list", "update", "watch"), "", "persistentvolumes"),
				rule(verbs("update"), "", "persistentvolumeclaims/status", "persistentvolumes/status"),
				rule(verbs("list", "watch"), "storage.k8s.io", "csidrivers", "storageclasses"),
				rule(verbs("create", "delete", "get", "list", "watch"), "storage.k8s.io", "volumeattachments"),
				rule(verbs("create", "list", "watch"), "", "serviceaccounts"),
				rule(verbs("get", "list", "watch"), "", "replicationcontrollers"),
				rule(verbs("update"), "", "replicationcontrollers/finalizers", "replicationcontrollers/status"),
				rule(verbs("get", "list", "patch", "update", "watch"), "apps", "deployments"),
				rule(verbs("create", "delete", "get", "list", "patch", "update", "watch"), "apps",
					"controllerrevisions",
					"replicasets"),
				rule(verbs("get", "list", "watch"), "apps", "daemonsets", "statefulsets"),
				rule(verbs("list", "watch"), "batch", "cronjobs"),
				rule(verbs("list", "watch"), "autoscaling", "horizontalpodautoscalers"),
				rule(verbs("update"), "autoscaling", "horizontalpodautoscalers/status"),
				// An autoscaler scales whatever has a scale, by whatever metrics there are.
				rule(verbs("get", "update"), "*", "*/scale"),
				rule(verbs("list"), "metrics.k8s.io", "pods"),
				rule(verbs("get", "list"), "custom.metrics.k8s.io", "*"),
				rule(verbs("get", "list"), "external.metrics.k8s.io", "*"),
				rule(verbs("list", "update", "watch"), "networking.k8s.io", "servicecidrs"),
				rule(verbs("update"), "networking.k8s.io", "servicecidrs/status"),
				rule(verbs("list"), "networking.k8s.io", "ipaddresses"),
				rule(verbs("list", "watch"), "policy", "poddisruptionbudgets"),
				rule(verbs("update"), "policy", "poddisruptionbudgets/status"),
				rule(verbs("list", "watch"), "resource.k8s.io", "resourceclaimtemplates"),
				rule(verbs("create", "delete", "list", "update", "watch"), "resource.k8s.io", "resourceclaims"),
				rule(verbs("update"), "resource.k8s.io", "resourceclaims/binding", "resourceclaims/status"),
				rule(verbs("create", "delete", "get", "list", "watch"), "batch", "jobs"),
				rule(verbs("update"), "batch", "cronjobs/finalizers", "cronjobs/status", "jobs/finalizers",
					"jobs/status"),
				rule(verbs("update"), "apps", "daemonsets/finalizers", "daemonsets/status", "deployments/finalizers",
					"deployments/status", "replicasets/finalizers", "replicasets/status",
					"statefulsets/finalizers", "statefulsets/status"),
			}),
	},
	{
		// It collects objects of every kind, also of kinds that are added later.
		name:     "system:keelson:podgc",
		users:    []string{"system:keelson:podgc"},
		confined: true,
		rules: rules(leases("podgc", "namespace", "nodehealth", "owners", "podgroupprotection", "pods", "pvcprotection",
			"pvprotection", "tainteviction", "ttlafterfinished", "vacprotection"), []rbacv1.PolicyRule{
			rights.Events,
			// Confined: it sees no Secret, and patches nothing but finalizers and owners.
			rule(verbs("delete", "deletecollection", "get", "list", "patch", "watch"), "*", "*"),
			rule(verbs("patch"), "", "nodes", "persistentvolumeclaims", "persistentvolumes"),
			rule(verbs("patch"), "scheduling.k8s.io", "podgroups"),
			rule(verbs("patch"), "storage.k8s.io", "volumeattributesclasses"),
			rule(verbs("update"), "", "namespaces/finalize", "namespaces/status"),
			rule(verbs("patch"), "", "nodes/status", "pods/status"),
		}),
	},
	{
		// Nodes have these rights by the Node authorizer, which bounds them. The role is there for those who look for
		// it.
		name:   "system:node",
		vacant: true,
		rules:  node.Rules,
	},
	{
		// A service proxy that is not the nodeagent's.
		name:  "system:node-proxier",
		users: []string{user.KubeProxy},
		rules: []rbacv1.PolicyRule{
			rights.Events,
			rule(read, "", "nodes"),
			rule(verbs("list", "watch"), "", "endpoints", "services"),
			rule(verbs("list", "watch"), "discovery.k8s.io", "endpointslices"),
			rule(verbs("list", "watch"), "networking.k8s.io", "servicecidrs"),
		},
	},
	{
		// A nodeagent leads to the Pods of the other nodes, and keeps Services from what those nodes need.
		name:   "system:keelson:pod-network",
		groups: []string{user.NodesGroup},
		rules:  []rbacv1.PolicyRule{rule(read, "", "nodes")},
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

// certificates are the rights of who approves nodes' own requests for certificates, issues what the signers of
// Kubernetes issue, takes away what has had its time, and publishes by which CA the apiserver is known.
func certificates() []rbacv1.PolicyRule {
	signers := func(verb string, names ...string) rbacv1.PolicyRule {
		right := rule(verbs(verb), certificatesv1.GroupName, "signers")
		right.ResourceNames = names
		return right
	}
	return []rbacv1.PolicyRule{
		rule(verbs("delete", "list", "watch"), certificatesv1.GroupName, requestsName),
		rule(verbs("update"), certificatesv1.GroupName, requestsName+"/approval",
			requestsName+"/status"),
		signers("approve", certificatesv1.KubeAPIServerClientKubeletSignerName),
		signers("sign", certificatesv1.KubeAPIServerClientSignerName,
			certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName),
		rule(verbs("create"), "authorization.k8s.io", "subjectaccessreviews"),
		rule(verbs("create", "delete", "list", "update", "watch"), certificatesv1.GroupName, bundlesName),
		signers("attest", trustbundle.KubeAPIServerServing),
	}
}

// leases are the rights to a service's Leases, one of each controller.
func leases(service string, controllers ...string) []rbacv1.PolicyRule {
	var names []string
	for _, controller := range controllers {
		names = append(names, service+"."+controller)
	}
	return rights.Leases(names...)
}
