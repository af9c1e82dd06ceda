package node

import (
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

const (
	// nodeField is the field selector by which a node lists its Pods.
	nodeField = "spec.nodeName"
	volumes   = "persistentvolumes"
	unrelated = "no relationship found between node '%s' and this object"
)

// request is what a node asks for.
type request struct {
	rbac.Request
	// fields and labels are the selectors of a list or watch.
	fields fields.Requirements
	labels labels.Requirements
}

// verdict is what a request deserves, as far as that can be said without a look at the node's Pods and volumes.
type verdict struct {
	allowed bool
	// by is who decides instead.
	by judge
	// reason is why the request is not allowed.
	reason string
}

// judge is what has to be looked at before a request can be answered; the zero value is nothing.
type judge int

const (
	byPods       judge = iota + 1 // the node's, see related
	byVolume                      // the one that is asked for, see ofVolume
	byAttachment                  // so, see ofAttachment
	bySlice                       // so, see ofSlice
)

var (
	allow     = verdict{allowed: true}
	askPods   = verdict{by: byPods}
	askVolume = verdict{by: byVolume}
)

func refuse(format string, args ...any) verdict { return verdict{reason: fmt.Sprintf(format, args...)} }

// decide answers a node's request, or says that its Pods do.
func decide(node string, r request) verdict {
	if !r.AllowedBy(Rules) {
		return verdict{}
	}
	switch r.APIGroup {
	case coordinationv1.GroupName:
		return decideLease(node, r)
	case corev1.GroupName:
		return decideCore(node, r)
	case resourcev1.GroupName:
		return decideDevices(node, r)
	case storagev1.GroupName:
		return decideStorage(node, r)
	}
	return allow
}

func decideCore(node string, r request) verdict {
	switch r.Resource {
	case podview.ConfigMaps, podview.Secrets, podview.PersistentVolumeClaims, podview.ServiceAccounts:
		return decideNamed(r)
	case "pods":
		return decidePod(node, r)
	case "nodes":
		return decideNode(node, r)
	case volumes:
		return decideVolume(node, r)
	}
	return allow
}

// decideVolume lets a node read and follow the volumes that are its own folders, and read those that its Pods claim.
func decideVolume(node string, r request) verdict {
	switch own := localvolume.NodeLabel; {
	case r.Name != "":
		return askVolume
	case labelled(r.labels, own, node):
		return allow
	default:
		return refuse("can only list/watch persistentvolumes with the label selector %s=%s", own, node)
	}
}

// ofVolume decides by the volume that is asked for. A claim that decides is what remains to be asked for; it is empty
// where none does. What a node may write of its own volumes is NodeRestriction's to say.
func ofVolume(node string, r request, volume *corev1.PersistentVolume) (verdict, request) {
	if volume.Labels[localvolume.NodeLabel] == node {
		return allow, request{}
	}
	claim := volume.Spec.ClaimRef
	if !slices.Contains(read, r.Verb) || claim == nil {
		return refuse(unrelated, node), request{}
	}
	return askPods, request{Request: rbac.Request{Verb: "get", Resource: podview.PersistentVolumeClaims,
		Namespace: claim.Namespace, Name: claim.Name}}
}

// decideNamed lets a node have single objects of a namespace, those that its Pods name.
func decideNamed(r request) verdict {
	switch {
	case r.Namespace == "":
		return refuse("can only read namespaced object of this type")
	case r.Name == "":
		return refuse("No Object name found")
	}
	return askPods
}

// decidePod lets a node read its own Pods. Which of them it may write is NodeRestriction's to say.
func decidePod(node string, r request) verdict {
	switch {
	case r.Subresource != "" || !slices.Contains(read, r.Verb):
		return allow
	case r.Verb != "get" && selects(r.fields, nodeField, node):
		return allow
	case r.Verb != "get" && r.Name == "":
		return refuse("can only list/watch pods with spec.nodeName field selector")
	}
	return decideNamed(r)
}

// decideNode lets a node read itself, also before it is registered. That it writes nothing else is NodeRestriction's to
// say.
func decideNode(node string, r request) verdict {
	switch {
	case !slices.Contains(read, r.Verb) || r.Name == node:
		return allow
	case r.Name == "":
		return refuse("node '%s' cannot read all nodes, only its own Node object", node)
	}
	return refuse("node '%s' cannot read '%s', only its own Node object", node, r.Name)
}

// decideLease lets a node have its heartbeat. The name of one that is created is not known yet: NodeRestriction looks
// at it.
func decideLease(node string, r request) verdict {
	switch {
	case r.Namespace != corev1.NamespaceNodeLease:
		return refuse("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case r.Verb != "create" && r.Name != node:
		return refuse("can only access node lease with the same name as the requesting node")
	}
	return allow
}

func selects(requirements fields.Requirements, field, value string) bool {
	return slices.ContainsFunc(requirements, func(r fields.Requirement) bool {
		return r.Field == field && r.Operator == selection.Equals && r.Value == value
	})
}

// labelled reports whether only objects with the label of this value are selected.
func labelled(requirements labels.Requirements, label, value string) bool {
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		one := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals ||
			r.Operator() == selection.In
		return r.Key() == label && one && r.Values().Len() == 1 && r.Values().Has(value)
	})
}

// related reports whether one of the Pods is bound to the node and is what the request is about, or names it.
func related(node string, r request, pods []corev1.Pod) bool {
	for i := range pods {
		pod := &pods[i]
		switch {
		case pod.Spec.NodeName != node || pod.Namespace != r.Namespace:
		case r.Resource == "pods" && pod.Name == r.Name,
			names(pod, podview.Reference{Resource: r.Resource, Name: r.Name}):
			return true
		}
	}
	return false
}

// names reports whether the Pod refers to the object. Nodes create mirrors of their static Pods themselves, so a mirror
// opens nothing.
func names(pod *corev1.Pod, object podview.Reference) bool {
	if podview.IsMirror(pod) {
		return false
	}
	if object.Resource == podview.ResourceClaims && podview.UsesResourceClaim(pod, object.Name) {
		return true
	}
	found := false
	podview.VisitReferences(pod, func(ref podview.Reference) { found = found || ref == object })
	return found
}
