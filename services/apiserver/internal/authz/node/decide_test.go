package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// pod is bound to the node and names a Secret, a ConfigMap, a claim and an account.
func pod(node, name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: name + "-account",
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: name + "-secret"}},
			Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: name + "-map"}}}},
				{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
					ClaimName: name + "-claim"}}},
			},
		},
	}
}

// cluster is a Pod of node a, one of node b, one that waits for a node, and what node a says are mirrors of its static
// Pods.
func cluster() []corev1.Pod {
	mirror := pod("a", "static")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	return []corev1.Pod{pod("a", "mine"), pod("b", "theirs"), pod("", "waiting"), mirror}
}

// disks are volumes by name: folders of two nodes, some that are bound to claims, and a free one.
func disks() map[string]*corev1.PersistentVolume {
	claimed := func(claim string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{
			Namespace: "ns", Name: claim}}}
	}
	folder := func(node string) *corev1.PersistentVolume {
		v := claimed("any")
		v.Labels = map[string]string{"local.keelson.dev/node": node}
		return v
	}
	return map[string]*corev1.PersistentVolume{"folder-a": folder("a"), "folder-b": folder("b"),
		"claimed-mine": claimed("mine-claim"), "claimed-theirs": claimed("theirs-claim"),
		"claimed-waiting": claimed("waiting-claim"), "free": {}}
}

// asks is what decide gets of a request; a resource may have a subresource.
func asks(verb, group, path, namespace, name string) request {
	resource, subresource, _ := strings.Cut(path, "/")
	return request{Request: rbac.Request{Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: name}}
}

func TestDecide(t *testing.T) {
	const (
		leases     = "coordination.k8s.io"
		discovery  = "discovery.k8s.io"
		ownNode    = "node 'a' cannot read 'b', only its own Node object"
		unrelated  = "no relationship found between node 'a' and this object"
		ownFolders = "can only list/watch persistentvolumes with the label selector local.keelson.dev/node=a"
		noName     = "No Object name found"
		noSpace    = "can only read namespaced object of this type"
		onlyMine   = "can only list/watch pods with spec.nodeName field selector"
		someone    = "can only access node lease with the same name as the requesting node"
	)
	rows := []struct {
		verbs                            []string
		group, resource, namespace, name string
		selector, labels                 string
		allowed                          bool
		reason                           string
	}{
		{verbs: read, resource: "secrets", namespace: "ns", name: "mine-secret", allowed: true},
		{verbs: read, resource: "secrets", namespace: "ns", name: "theirs-secret", reason: unrelated},
		{verbs: read, resource: "secrets", namespace: "ns", name: "waiting-secret", reason: unrelated},
		{verbs: read, resource: "secrets", namespace: "ns", name: "static-secret", reason: unrelated},
		{verbs: read, resource: "secrets", namespace: "ns", name: "mine-map", reason: unrelated},
		{verbs: read, resource: "secrets", namespace: "other", name: "mine-secret", reason: unrelated},
		{verbs: read, resource: "secrets", namespace: "ns", reason: noName},
		{verbs: read, resource: "secrets", name: "mine-secret", reason: noSpace},
		{verbs: []string{"create", "update", "patch", "delete", "deletecollection"}, resource: "secrets",
			namespace: "ns", name: "mine-secret"},
		{verbs: read, resource: "configmaps", namespace: "ns", name: "mine-map", allowed: true},
		{verbs: read, resource: "configmaps", namespace: "ns", name: "theirs-map", reason: unrelated},
		{verbs: []string{"list", "watch"}, resource: "configmaps", namespace: "ns", reason: noName},
		{verbs: read, resource: "persistentvolumeclaims", namespace: "ns", name: "mine-claim", allowed: true},
		{verbs: read, resource: "persistentvolumeclaims", namespace: "ns", name: "theirs-claim", reason: unrelated},
		{verbs: []string{"list", "watch"}, resource: "persistentvolumeclaims", namespace: "ns", reason: noName},
		{verbs: []string{"update", "patch", "delete"}, resource: "persistentvolumeclaims", namespace: "ns",
			name: "mine-claim"},
		{verbs: []string{"get", "patch", "update"}, resource: volumes, name: "folder-a", allowed: true},
		{verbs: []string{"get", "patch", "update"}, resource: volumes, name: "folder-b", reason: unrelated},
		{verbs: read, resource: volumes, name: "claimed-mine", allowed: true},
		{verbs: []string{"patch", "update"}, resource: volumes, name: "claimed-mine", reason: unrelated},
		{verbs: read, resource: volumes, name: "claimed-theirs", reason: unrelated},
		{verbs: read, resource: volumes, name: "claimed-waiting", reason: unrelated},
		{verbs: []string{"get"}, resource: volumes, name: "free", reason: unrelated},
		{verbs: []string{"get"}, resource: volumes, name: "missing", reason: unrelated},
		{verbs: []string{"create", "delete", "deletecollection"}, resource: volumes, name: "folder-a"},
		{verbs: []string{"get", "patch", "update"}, resource: "persistentvolumes/status", name: "folder-a"},
		{verbs: []string{"list", "watch"}, resource: volumes, reason: ownFolders},
		{verbs: read, resource: volumes, name: "folder-a", allowed: true},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node=a", allowed: true},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node in (a),x=y",
			allowed: true},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node in (a,b)",
			reason: ownFolders},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node=b", reason: ownFolders},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node!=a", reason: ownFolders},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "local.keelson.dev/node", reason: ownFolders},
		{verbs: []string{"list", "watch"}, resource: volumes, labels: "node=a", reason: ownFolders},
		{verbs: read, resource: volumes, name: "folder-b", labels: "local.keelson.dev/node=a", reason: unrelated},

		{verbs: []string{"get"}, resource: "serviceaccounts", namespace: "ns", name: "mine-account", allowed: true},
		{verbs: []string{"get"}, resource: "serviceaccounts", namespace: "ns", name: "theirs-account",
			reason: unrelated},
		{verbs: []string{"list", "watch"}, resource: "serviceaccounts", namespace: "ns", name: "mine-account"},
		{verbs: []string{"create"}, resource: "serviceaccounts/token", namespace: "ns", name: "mine-account",
			allowed: true},
		{verbs: []string{"create"}, resource: "serviceaccounts/token", namespace: "ns", name: "theirs-account",
			reason: unrelated},
		{verbs: []string{"create"}, resource: "serviceaccounts/token", namespace: "ns", reason: noName},
		{verbs: []string{"create"}, resource: "serviceaccounts", namespace: "ns", name: "mine-account"},

		{verbs: read, resource: "pods", namespace: "ns", name: "mine", allowed: true},
		{verbs: read, resource: "pods", namespace: "ns", name: "static", allowed: true},
		{verbs: read, resource: "pods", namespace: "ns", name: "theirs", reason: unrelated},
		{verbs: read, resource: "pods", namespace: "ns", name: "waiting", reason: unrelated},
		{verbs: []string{"get"}, resource: "pods", namespace: "ns", reason: noName},
		{verbs: []string{"get"}, resource: "pods", namespace: "ns", name: "theirs", selector: "spec.nodeName=a",
			reason: unrelated},
		{verbs: []string{"list", "watch"}, resource: "pods", reason: onlyMine},
		{verbs: []string{"list", "watch"}, resource: "pods", namespace: "ns", reason: onlyMine},
		{verbs: []string{"list", "watch"}, resource: "pods", selector: "spec.nodeName=a", allowed: true},
		{verbs: []string{"list", "watch"}, resource: "pods", selector: "spec.nodeName=a,status.phase!=Failed",
			allowed: true},
		{verbs: []string{"list", "watch"}, resource: "pods", selector: "spec.nodeName=b", reason: onlyMine},
		{verbs: []string{"list", "watch"}, resource: "pods", selector: "spec.nodeName!=a", reason: onlyMine},
		{verbs: []string{"list", "watch"}, resource: "pods", selector: "spec.serviceAccountName=a", reason: onlyMine},
		{verbs: []string{"create", "delete"}, resource: "pods", namespace: "ns", name: "theirs", allowed: true},
		{verbs: []string{"update", "patch", "deletecollection"}, resource: "pods", namespace: "ns", name: "mine"},
		{verbs: []string{"update", "patch"}, resource: "pods/status", namespace: "ns", name: "theirs", allowed: true},
		{verbs: []string{"create"}, resource: "pods/eviction", namespace: "ns", name: "theirs", allowed: true},
		{verbs: []string{"get"}, resource: "pods/status", namespace: "ns", name: "theirs"},
		{verbs: []string{"get", "create"}, resource: "pods/exec", namespace: "ns", name: "mine"},
		{verbs: []string{"get"}, resource: "pods/log", namespace: "ns", name: "mine"},

		{verbs: read, resource: "nodes", name: "a", allowed: true},
		{verbs: read, resource: "nodes", name: "b", reason: ownNode},
		{verbs: read, resource: "nodes", reason: "node 'a' cannot read all nodes, only its own Node object"},
		{verbs: []string{"create", "update", "patch"}, resource: "nodes", name: "b", allowed: true},
		{verbs: []string{"update", "patch"}, resource: "nodes/status", name: "b", allowed: true},
		{verbs: []string{"get"}, resource: "nodes/status", name: "b"},
		{verbs: []string{"delete"}, resource: "nodes", name: "a"},
		{verbs: []string{"get", "create"}, resource: "nodes/proxy", name: "a"},

		{verbs: []string{"get", "update", "patch", "delete"}, group: leases, resource: "leases",
			namespace: "kube-node-lease", name: "a", allowed: true},
		{verbs: []string{"create"}, group: leases, resource: "leases", namespace: "kube-node-lease", allowed: true},
		{verbs: []string{"get", "update", "patch", "delete"}, group: leases, resource: "leases",
			namespace: "kube-node-lease", name: "b", reason: someone},
		{verbs: []string{"get", "create", "update"}, group: leases, resource: "leases", namespace: "kube-system",
			name: "a", reason: `can only access leases in the "kube-node-lease" system namespace`},
		{verbs: []string{"list", "watch"}, group: leases, resource: "leases", namespace: "kube-node-lease", name: "a"},

		{verbs: read, group: "certificates.k8s.io", resource: "clustertrustbundles", allowed: true},
		{verbs: read, group: "certificates.k8s.io", resource: "clustertrustbundles", name: "any", allowed: true},
		{verbs: []string{"create", "update", "patch", "delete"}, group: "certificates.k8s.io",
			resource: "clustertrustbundles", name: "any"},

		{verbs: read, resource: "services", allowed: true},
		{verbs: []string{"create", "update", "patch", "delete"}, resource: "services", namespace: "ns", name: "mine"},
		{verbs: []string{"update", "patch"}, resource: "services/status", namespace: "ns", name: "mine"},
		{verbs: []string{"list", "watch"}, group: discovery, resource: "endpointslices", allowed: true},
		{verbs: read, group: discovery, resource: "endpointslices", namespace: "ns", name: "any", allowed: true},
		{verbs: []string{"create", "update", "patch", "delete"}, group: discovery, resource: "endpointslices",
			namespace: "ns", name: "any"},
		{verbs: []string{"create", "patch", "update"}, resource: "events", namespace: "ns", allowed: true},
		{verbs: []string{"create", "patch", "update"}, group: "events.k8s.io", resource: "events", namespace: "ns",
			allowed: true},
		{verbs: []string{"get"}, resource: "events", namespace: "ns"},
		{verbs: read, group: "node.k8s.io", resource: "runtimeclasses", allowed: true},
		{verbs: []string{"create"}, group: "authentication.k8s.io", resource: "tokenreviews", allowed: true},
		{verbs: []string{"create"}, group: "authorization.k8s.io", resource: "subjectaccessreviews", allowed: true},
		{verbs: read, group: "apps", resource: "deployments", namespace: "ns", name: "mine"},
		{verbs: []string{"*"}, group: "*", resource: "*"},
		{verbs: []string{"get"}, group: "apps", resource: "secrets", namespace: "ns", name: "mine-secret"},
	}
	for _, row := range rows {
		for _, verb := range row.verbs {
			r := asks(verb, row.group, row.resource, row.namespace, row.name)
			r.fields = fields.ParseSelectorOrDie(row.selector).Requirements()
			r.labels, _ = labels.ParseToRequirements(row.labels)
			v := decide("a", r)
			if v.by == byVolume {
				v = refuse(unrelated)
				if volume := disks()[row.name]; volume != nil {
					v, r = ofVolume("a", r, volume)
				}
			}
			if v.by == byPods {
				v = refuse(unrelated)
				if related("a", r, cluster()) {
					v = allow
				}
			}
			if v.allowed != row.allowed || v.reason != row.reason {
				t.Errorf("%s %s %s/%s [%s]: %v %q, want %v %q", verb, row.resource, row.namespace, row.name,
					row.selector, v.allowed, v.reason, row.allowed, row.reason)
			}
		}
	}
	if v := decide("a", request{Request: rbac.Request{Verb: "get", Path: "/metrics"}}); v != (verdict{}) {
		t.Errorf("what is no resource: %+v, want no opinion", v)
	}
}
