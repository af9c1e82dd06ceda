package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// userRoles are the roles for people and for everybody.
var userRoles = []role{
	{
		name: "cluster-admin",
		rules: []rbacv1.PolicyRule{
			rule(verbs("*"), "*", "*"),
			{Verbs: verbs("*"), NonResourceURLs: []string{"*"}},
		},
		groups: []string{user.SystemPrivilegedGroup},
	},
	{
		name: "system:discovery",
		rules: []rbacv1.PolicyRule{paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
			"/openapi/*", "/readyz", "/version", "/version/")},
		groups: []string{user.AllAuthenticated},
	},
	{
		name:   "system:public-info-viewer",
		rules:  []rbacv1.PolicyRule{paths("/healthz", "/livez", "/readyz", "/version", "/version/")},
		groups: []string{user.AllAuthenticated, user.AllUnauthenticated},
	},
	{
		name: "system:basic-user",
		rules: []rbacv1.PolicyRule{
			rule(verbs("create"), "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule(verbs("create"), "authentication.k8s.io", "selfsubjectreviews"),
		},
		groups: []string{user.AllAuthenticated},
	},
	{
		name: "system:service-account-issuer-discovery",
		rules: []rbacv1.PolicyRule{paths("/.well-known/openid-configuration", "/.well-known/openid-configuration/",
			"/openid/v1/jwks", "/openid/v1/jwks/")},
		groups: []string{serviceaccount.AllServiceAccountsGroup},
	},
	{
		name: "system:monitoring",
		rules: []rbacv1.PolicyRule{paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis",
			"/readyz", "/readyz/*")},
		groups: []string{user.MonitoringGroup},
	},
	{
		name: "system:auth-delegator",
		rules: []rbacv1.PolicyRule{
			rule(verbs("create"), "authentication.k8s.io", "tokenreviews"),
			rule(verbs("create"), "authorization.k8s.io", "subjectaccessreviews"),
		},
	},
	{name: "admin", collects: aggregateToAdmin},
	{name: "edit", collects: aggregateToEdit, labels: map[string]string{aggregateToAdmin: "true"}},
	{name: "view", collects: aggregateToView, labels: map[string]string{aggregateToEdit: "true"}},
	{
		name:   "system:aggregate-to-admin",
		labels: map[string]string{aggregateToAdmin: "true"},
		rules: []rbacv1.PolicyRule{
			rule(verbs("create"), "authorization.k8s.io", "localsubjectaccessreviews"),
			rule(readWrite, "rbac.authorization.k8s.io", "roles", "rolebindings"),
		},
	},
	{
		name:   "system:aggregate-to-edit",
		labels: map[string]string{aggregateToEdit: "true"},
		rules: []rbacv1.PolicyRule{
			rule(read, "", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"),
			rule(verbs("impersonate"), "", "serviceaccounts"),
			rule(write, "", "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"),
			rule(verbs("create"), "", "pods/eviction", "serviceaccounts/token"),
			rule(write, "", "configmaps", "events", "persistentvolumeclaims", "replicationcontrollers",
				"replicationcontrollers/scale", "secrets", "serviceaccounts", "services", "services/proxy"),
			rule(write, "apps", "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets",
				"replicasets/scale", "statefulsets", "statefulsets/scale"),
			rule(write, "autoscaling", "horizontalpodautoscalers"),
			rule(write, "batch", "cronjobs", "jobs"),
			rule(write, "policy", "poddisruptionbudgets"),
			rule(write, "resource.k8s.io", "resourceclaims", "resourceclaimtemplates"),
			rule(write, "scheduling.k8s.io", "podgroups", "workloads"),
			rule(write, "networking.k8s.io", "ingresses", "networkpolicies"),
			rule(readWrite, "coordination.k8s.io", "leases"),
		},
	},
	{
		name:   "system:aggregate-to-view",
		labels: map[string]string{aggregateToView: "true"},
		rules: []rbacv1.PolicyRule{
			rule(read, "", "bindings", "configmaps", "endpoints", "events", "limitranges", "namespaces",
				"namespaces/status",
				"persistentvolumeclaims", "persistentvolumeclaims/status", "pods", "pods/log", "pods/status",
				"replicationcontrollers",
				"replicationcontrollers/scale", "replicationcontrollers/status", "resourcequotas",
				"resourcequotas/status",
				"serviceaccounts", "services", "services/status"),
			rule(read, "apps", "controllerrevisions", "daemonsets", "daemonsets/status", "deployments",
				"deployments/scale",
				"deployments/status", "replicasets", "replicasets/scale", "replicasets/status", "statefulsets",
				"statefulsets/scale", "statefulsets/status"),
			rule(read, "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
			rule(read, "batch", "cronjobs", "cronjobs/status", "jobs", "jobs/status"),
			rule(read, "discovery.k8s.io", "endpointslices"),
			rule(read, "events.k8s.io", "events"),
			rule(read, "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
			rule(read, "resource.k8s.io", "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"),
			rule(read, "scheduling.k8s.io", "podgroups", "podgroups/status", "workloads"),
			rule(read, "networking.k8s.io", "ingresses", "ingresses/status", "networkpolicies"),
		},
	},
	{
		name:   "system:aggregated-metrics-reader",
		labels: map[string]string{aggregateToAdmin: "true", aggregateToEdit: "true", aggregateToView: "true"},
		rules:  []rbacv1.PolicyRule{rule(read, "metrics.k8s.io", "nodes", "pods")},
	},
}
