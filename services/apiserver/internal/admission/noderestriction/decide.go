package noderestriction

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"keelson.dev/kit/podview"
)

// restrictedLabels is the namespace of labels that tell workloads apart that must not share a Node: no Node may give
// itself one.
const restrictedLabels = "node-restriction.kubernetes.io"

// Annotations that tell, with the mirror's own, where a Node has a Pod from. They are said once, when it is created.
const (
	configHash   = "kubernetes.io/config.hash"
	configSource = "kubernetes.io/config.source"
)

// checkNewNode lets a Node register itself, with labels that are its own to say.
func checkNewNode(node string, created *corev1.Node) error {
	if err := checkOwn(node, created.Name); err != nil {
		return err
	}
	if forbidden := forbiddenLabels(created.Labels, nil); len(forbidden) > 0 {
		return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(forbidden, ", "))
	}
	return nil
}

// checkNodeUpdate lets a Node change itself, but neither its taints nor labels that others decide by.
func checkNodeUpdate(node string, updated, old *corev1.Node) error {
	if err := checkOwn(node, updated.Name); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(updated.Spec.Taints, old.Spec.Taints) {
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	}
	if !equality.Semantic.DeepEqual(updated.OwnerReferences, old.OwnerReferences) {
		return fmt.Errorf("node %q is not allowed to modify owner references", node)
	}
	if forbidden := forbiddenLabels(updated.Labels, old.Labels); len(forbidden) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(forbidden, ", "))
	}
	return nil
}

func checkOwn(node, name string) error {
	if name == node {
		return nil
	}
	return fmt.Errorf("node %q is not allowed to modify node %q", node, name)
}

// forbiddenLabels lists the labels that differ and are not the Node's to say: those of the API's namespaces that are
// not a kubelet's, and restricted ones.
func forbiddenLabels(now, was map[string]string) []string {
	var forbidden []string
	all := maps.Clone(now)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, was)
	for key := range all {
		value, set := now[key]
		before, had := was[key]
		if set == had && value == before {
			continue
		}
		namespace, _, _ := strings.Cut(key, "/")
		if under(namespace, restrictedLabels) || apiNamespace(namespace) && !kubeletapis.IsKubeletLabel(key) {
			forbidden = append(forbidden, key)
		}
	}
	slices.Sort(forbidden)
	return forbidden
}

func apiNamespace(namespace string) bool {
	return under(namespace, "kubernetes.io") || under(namespace, "k8s.io")
}

func under(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}

// checkNewPod lets a Node create nothing but mirrors of its static Pods: they belong to the Node, whose UID is given,
// and reach for nothing of the API. Labels and namespace are the static Pod's own, as in every cluster.
func checkNewPod(node string, uid types.UID, pod *corev1.Pod) error {
	if !podview.IsMirror(pod) {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods",
			corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := checkOwner(node, uid, pod.OwnerReferences); err != nil {
		return err
	}
	var references []string
	podview.VisitReferences(pod, func(r podview.Reference) {
		references = append(references, strings.TrimSpace(r.Resource+" "+r.Name))
	})
	if len(references) > 0 {
		return fmt.Errorf("node %q can only create pods that reference nothing of the API, not %s", node,
			strings.Join(references, ", "))
	}
	return nil
}

// checkOwner requires the Node as the one owner, so that no other owner adopts the mirror and it goes when the Node
// goes.
func checkOwner(node string, uid types.UID, owners []metav1.OwnerReference) error {
	if len(owners) != 1 {
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	owner := owners[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case owner.UID != uid:
		return fmt.Errorf("node %q can only create pods with its own UID in the owner reference: %s, not %s", node, uid,
			owner.UID)
	case owner.Controller == nil || !*owner.Controller:
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	return nil
}

// checkPodStatus lets a Node report on the Pods that run on it.
func checkPodStatus(node string, updated, old *corev1.Pod) error {
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	if !equality.Semantic.DeepEqual(updated.Labels, old.Labels) {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	}
	// By them a node comes to read claims.
	if !equality.Semantic.DeepEqual(updated.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses) ||
		!equality.Semantic.DeepEqual(updated.Status.ExtendedResourceClaimStatus,
			old.Status.ExtendedResourceClaimStatus) {
		return fmt.Errorf("node %q cannot update resource claim statuses", node)
	}
	for _, key := range []string{configHash, configSource, corev1.MirrorPodAnnotationKey} {
		now, is := updated.Annotations[key]
		if before, was := old.Annotations[key]; is != was || now != before {
			return fmt.Errorf("node %q cannot update the annotation %s through pod status", node, key)
		}
	}
	return nil
}

// checkPodRemoval lets a Node delete or evict the Pods that run on it.
func checkPodRemoval(node, verb string, pod *corev1.Pod) error {
	if pod.Spec.NodeName == node {
		return nil
	}
	return fmt.Errorf("node %q can only %s pods with spec.nodeName set to itself", node, verb)
}

// checkLease lets a Node keep its own heartbeat.
func checkLease(node, namespace, name string) error {
	if namespace != corev1.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	if name != node {
		return fmt.Errorf("can only access node lease with the same name as the requesting node")
	}
	return nil
}

// nameOf is the object's name; a request that creates may leave it to the object.
func nameOf(name string, obj metav1.Object) string {
	if name == "" && obj != nil {
		return obj.GetName()
	}
	return name
}
