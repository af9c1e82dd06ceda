package node

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules are what a node may do at most: what it reads is bounded further by its name and its Pods, what it writes by
// the admission plugin NodeRestriction. They are the ClusterRole system:node as well.
var Rules = []rbacv1.PolicyRule{
	rule("", []string{"create", "patch", "update"}, "events"),
	rule("events.k8s.io", []string{"create", "patch", "update"}, "events"),
	rule("coordination.k8s.io", []string{"create", "delete", "get", "patch", "update"}, "leases"),
	rule("", []string{"create", "get", "list", "patch", "update", "watch"}, "nodes"),
	rule("", []string{"patch", "update"}, "nodes/status", "pods/status"),
	rule("", []string{"create", "delete", "get", "list", "watch"}, "pods"),
	rule("", []string{"create"}, "pods/eviction", "serviceaccounts/token"),
	rule("", read, "configmaps", "secrets", "services"),
	rule("", read, "persistentvolumeclaims"),
	rule("", []string{"patch"}, "persistentvolumeclaims/status"),
	rule("", []string{"get"}, "serviceaccounts"),
	rule("", []string{"get", "list", "patch", "update", "watch"}, "persistentvolumes"),
	rule("certificates.k8s.io", []string{"create", "get", "list", "watch"}, "certificatesigningrequests"),
	rule("certificates.k8s.io", read, "clustertrustbundles"),
	rule("discovery.k8s.io", read, "endpointslices"),
	rule("node.k8s.io", read, "runtimeclasses"),
	rule("resource.k8s.io", []string{"get"}, "resourceclaims"),
	rule("resource.k8s.io", []string{"create", "delete", "deletecollection", "get", "list", "patch", "update",
		"watch"}, "resourceslices"),
	rule("storage.k8s.io", read, "csidrivers"),
	rule("storage.k8s.io", []string{"create", "delete", "get", "patch", "update"}, "csinodes"),
	rule("storage.k8s.io", []string{"get"}, "volumeattachments"),
	rule("authentication.k8s.io", []string{"create"}, "tokenreviews"),
	rule("authorization.k8s.io", []string{"create"}, "localsubjectaccessreviews", "subjectaccessreviews"),
}

var read = []string{"get", "list", "watch"}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}
