package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// autoUpdate is the annotation by which an operator keeps a role from being restored.
	autoUpdate = rbacv1.AutoUpdateAnnotationKey
	// bootstrapping is the label of what the apiserver makes at start.
	bootstrapping = "kubernetes.io/bootstrapping"

	aggregateToAdmin = "rbac.authorization.k8s.io/aggregate-to-admin"
	aggregateToEdit  = "rbac.authorization.k8s.io/aggregate-to-edit"
	aggregateToView  = "rbac.authorization.k8s.io/aggregate-to-view"
)

var (
	read      = []string{"get", "list", "watch"}
	write     = []string{"create", "delete", "deletecollection", "patch", "update"}
	readWrite = append(append([]string{}, read...), write...)
)

// role is one ClusterRole and who has it.
type role struct {
	name     string
	rules    []rbacv1.PolicyRule
	users    []string
	groups   []string
	labels   map[string]string
	collects string // label of the roles whose rules make up this one
	vacant   bool   // its binding has no subjects; those of earlier versions are removed
	confined bool   // what it says of all resources is no subresource, and not what is in Secrets
}

// Confined are the names of the ClusterRoles that the authorizer confines.
func Confined() []string {
	var names []string
	for _, r := range daemonRoles {
		if r.confined {
			names = append(names, r.name)
		}
	}
	return names
}

func (r role) clusterRole() *rbacv1.ClusterRole {
	out := &rbacv1.ClusterRole{ObjectMeta: systemMeta(r.name), Rules: r.rules}
	for key, value := range r.labels {
		out.Labels[key] = value
	}
	if r.collects != "" {
		out.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{r.collects: "true"}}}}
	}
	return out
}

// binding is nil for a role that has no subjects from the start.
func (r role) binding() *rbacv1.ClusterRoleBinding {
	if len(r.users)+len(r.groups) == 0 && !r.vacant {
		return nil
	}
	out := &rbacv1.ClusterRoleBinding{
		ObjectMeta: systemMeta(r.name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name},
	}
	for _, user := range r.users {
		out.Subjects = append(out.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind,
			Name: user})
	}
	for _, group := range r.groups {
		out.Subjects = append(out.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind,
			Name: group})
	}
	return out
}

func systemMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{bootstrapping: "rbac-defaults"},
		Annotations: map[string]string{autoUpdate: "true"},
	}
}

func rule(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func verbs(v ...string) []string { return v }

func paths(p ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs("get"), NonResourceURLs: p}
}

func rules(lists ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
