package controller

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/rights"
)

// Rules are all that a service with these controllers does at the apiserver: what each of them declares, and its Lease.
func Rules(service string, controllers []Registration) []rbacv1.PolicyRule {
	var roles []string
	var all []rbacv1.PolicyRule
	for _, r := range controllers {
		roles = append(roles, service+"."+r.Name)
		all = append(all, r.Rules...)
	}
	return append(rights.Leases(roles...), all...)
}
