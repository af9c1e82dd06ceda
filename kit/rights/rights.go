// Package rights holds the rules that daemons have in common. What a daemon declares is what its ClusterRole grants:
// the mesh's own tests compare the two, and refuse every other request.
package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Events are the rights of a daemon that reports what it did.
var Events = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"},
	Verbs: []string{"create", "patch"}}

// Leases are the rights of a candidate for the roles; without names, for any.
func Leases(roles ...string) []rbacv1.PolicyRule {
	groups, resources := []string{"coordination.k8s.io"}, []string{"leases"}
	return []rbacv1.PolicyRule{
		// An object to create has no name yet that a rule could match.
		{APIGroups: groups, Resources: resources, Verbs: []string{"create"}},
		{APIGroups: groups, Resources: resources, ResourceNames: roles, Verbs: []string{"get", "update"}},
	}
}
