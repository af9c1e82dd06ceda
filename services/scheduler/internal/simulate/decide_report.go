package simulate

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Why a Pod asks for a node.
const (
	FromManifest = "manifest"
	FromLostNode = "lost node"
	FromNewNode  = "new node"
	FromMesh     = "waiting"
	FromVictim   = "preempted"
)

// Report is what `keel simulate -o json` prints.
type Report struct {
	// Nodes is how many there are, after what was added and taken away.
	Nodes int `json:"nodes"`
	// Workloads are those whose Pods ask for a node, in the order of the requests.
	Workloads []Workload `json:"workloads"`
	// Preempted are the Pods that give their room to others.
	Preempted []Preempted `json:"preempted"`
	// Lost are the Pods that go with their node and that no controller recreates.
	Lost []string `json:"lost"`
	// Ignored are the objects of the manifests that have no Pods and change nothing for them.
	Ignored []string `json:"ignored"`
}

// Workload is Pods of one owner that ask for a node for one reason.
type Workload struct {
	From      string `json:"from"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Fit is how many of the Pods get a node.
	Fit  int   `json:"fit"`
	Pods []Pod `json:"pods"`
}

// Pod is what becomes of one.
type Pod struct {
	Name string `json:"name"`
	// Node is where it goes, and Order its place among the Pods that get a node, from 1; both are left out where no
	// node can take it, and Order where the Pod names its node itself.
	Node  string `json:"node,omitempty"`
	Order int    `json:"order,omitempty"`
	// Message is why no node can, and WouldFit the least change that would make it fit.
	Message  string `json:"message,omitempty"`
	WouldFit string `json:"wouldFit,omitempty"`
}

// Preempted is a Pod that gives its room on a node to another.
type Preempted struct {
	Pod  string `json:"pod"`
	By   string `json:"by"`
	Node string `json:"node"`
}

// request is the Pods that request a node for one reason.
type request struct {
	from string
	pods []*corev1.Pod
}

// report sorts out what became of the Pods.
func (r *run) report(requests []request) Report {
	out := Report{Workloads: []Workload{}, Preempted: []Preempted{}, Lost: []string{}, Ignored: []string{}}
	for _, q := range append(requests, request{FromVictim, r.again}) {
		at := map[metav1.OwnerReference]int{}
		for _, p := range q.pods {
			owner := ownerOf(p)
			i, ok := at[owner]
			if !ok {
				i = len(out.Workloads)
				at[owner] = i
				out.Workloads = append(out.Workloads, Workload{From: q.from, Kind: owner.Kind, Namespace: p.Namespace,
					Name: owner.Name})
			}
			o, w := r.outcomes[p.UID], &out.Workloads[i]
			if o.node != "" {
				w.Fit++
			}
			w.Pods = append(w.Pods, Pod{Name: p.Name, Node: o.node, Order: o.order, Message: o.message,
				WouldFit: o.change})
		}
	}
	for _, v := range r.victims {
		out.Preempted = append(out.Preempted, Preempted{Pod: v.pod.Namespace + "/" + v.pod.Name, By: v.by.Namespace +
			"/" +
			v.by.Name, Node: v.node})
	}
	slices.SortStableFunc(out.Preempted, func(a, b Preempted) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Pod, b.Pod))
	})
	return out
}

// ownerOf returns the kind, the name and, as UID, the namespace of the owner of the Pod: the Pod itself if it has none.
func ownerOf(p *corev1.Pod) metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		kind := owner.Kind
		if p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			kind = "Deployment" // what the manifest has
		}
		return metav1.OwnerReference{Kind: kind, Name: owner.Name, UID: uid("", p.Namespace, "")}
	}
	return metav1.OwnerReference{Kind: "Pod", Name: p.Name, UID: uid("", p.Namespace, "")}
}
