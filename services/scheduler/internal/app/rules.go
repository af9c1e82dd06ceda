package app

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/rights"
)

// Rules are all that the scheduler does at the apiserver. Profiles have any names, and so their Leases.
func Rules() []rbacv1.PolicyRule {
	return append(rights.Leases(),
		rights.Events,
		rbacv1.PolicyRule{APIGroups: []string{""},
			Resources: []string{"namespaces", "nodes", "replicationcontrollers", "services"},
			Verbs:     []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"},
			Verbs: []string{"delete", "get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups/status"},
			Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumes"},
			Verbs: []string{"list", "patch", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"storage.k8s.io"},
			Resources: []string{"csidrivers", "csinodes", "csistoragecapacities", "storageclasses",
				"volumeattachments"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"replicasets", "statefulsets"},
			Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
	)
}
