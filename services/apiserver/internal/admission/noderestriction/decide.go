package noderestriction

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// restrictedLabels is the namespace of labels that tell workloads apart that must not share a Node: no Node may give
// itself one.
const restrictedLabels = "node-restriction.kubernetes.io"

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

// forbiddenLabels lists the labels that differ and are not the Node's to say: those of the API's namespaces that are not
// a kubelet's, and restricted ones.
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

// checkNewPod lets a Node create nothing but mirrors of its static Pods, which may not reach for anything of the API.
func checkNewPod(node string, pod *corev1.Pod) error {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	for _, owner := range pod.OwnerReferences {
		if owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node {
			return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
		}
	}
	if pod.Spec.ServiceAccountName != "" {
		return fmt.Errorf("node %q can not create pods that reference a service account", node)
	}
	if reference := apiReference(&pod.Spec); reference != "" {
		return fmt.Errorf("node %q can not create pods that reference %s", node, reference)
	}
	return nil
}

// apiReference names the first thing of the API that a Pod's volumes or environment take content from.
func apiReference(spec *corev1.PodSpec) string {
	for i := range spec.Volumes {
		if reference := volumeReference(&spec.Volumes[i].VolumeSource); reference != "" {
			return reference
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if reference := environmentReference(&containers[i]); reference != "" {
				return reference
			}
		}
	}
	if len(spec.ResourceClaims) > 0 {
		return "resource claims"
	}
	return ""
}

func volumeReference(source *corev1.VolumeSource) string {
	switch {
	case source.Secret != nil:
		return "secrets"
	case source.ConfigMap != nil:
		return "configmaps"
	case source.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case source.Projected == nil:
		return ""
	}
	for _, projection := range source.Projected.Sources {
		switch {
		case projection.Secret != nil:
			return "secrets"
		case projection.ConfigMap != nil:
			return "configmaps"
		case projection.ServiceAccountToken != nil:
			return "service account tokens"
		}
	}
	return ""
}

func environmentReference(c *corev1.Container) string {
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			return "secrets"
		case from.ConfigMapRef != nil:
			return "configmaps"
		}
	}
	for _, variable := range c.Env {
		switch {
		case variable.ValueFrom == nil:
		case variable.ValueFrom.SecretKeyRef != nil:
			return "secrets"
		case variable.ValueFrom.ConfigMapKeyRef != nil:
			return "configmaps"
		}
	}
	return ""
}

// checkPodStatus lets a Node report on the Pods that run on it.
func checkPodStatus(node string, updated, old *corev1.Pod) error {
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	if !equality.Semantic.DeepEqual(updated.Labels, old.Labels) {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
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

// checkTokenRequest lets a Node ask for tokens of Pods only; the Pod is named with its UID.
func checkTokenRequest(request *authenticationv1.TokenRequest) error {
	ref := request.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return fmt.Errorf("node requested token not bound to a pod")
	case ref.UID == "":
		return fmt.Errorf("node requested token with a pod binding without a uid")
	}
	return nil
}

// checkTokenPod lets a Node ask for tokens of the Pods that run on it.
func checkTokenPod(node string, request *authenticationv1.TokenRequest, pod *corev1.Pod) error {
	if request.Spec.BoundObjectRef.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", request.Spec.BoundObjectRef.UID)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node requested token bound to a pod scheduled on a different node")
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
