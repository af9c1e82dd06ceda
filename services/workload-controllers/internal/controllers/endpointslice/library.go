package endpointslice

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/util"

	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

// manager is what the slices of this controller say in their label.
const manager = "endpointslice-controller.k8s.io"

// Decide returns how the slices of a Service become what its Pods ask for, with as few writes as the field makes:
// the library decides, over a client that notes what it is asked for and writes nothing. Pods whose node does not
// exist are left out.
func Decide(in Input) endpointfeed.Plan {
	asked := &notes{}
	library := endpointslice.NewReconciler(asked, nodes{known: in.Nodes}, in.MaxEndpoints,
		util.NewEndpointSliceTracker(), nil, nil, manager,
		endpointslice.WithPreferSameTrafficDistributionEnabled(true))
	// The only errors are of Pods that are left out. A node that comes wakes the Service up.
	_ = library.Reconcile(logr.Discard(), in.Service, in.Pods, own(in.Slices), in.Changed)
	condition(&asked.plan, in.Slices)
	return asked.plan
}

// notes is a client that makes a plan of what is written to it.
type notes struct {
	kubernetes.Interface
	discoveryclient.DiscoveryV1Interface
	discoveryclient.EndpointSliceInterface

	plan endpointfeed.Plan
}

// DiscoveryV1 returns the notes.
func (n *notes) DiscoveryV1() discoveryclient.DiscoveryV1Interface { return n }

// EndpointSlices returns the notes.
func (n *notes) EndpointSlices(string) discoveryclient.EndpointSliceInterface { return n }

// Create notes a slice to create.
func (n *notes) Create(_ context.Context, slice *discoveryv1.EndpointSlice, _ metav1.CreateOptions) (
	*discoveryv1.EndpointSlice, error) {
	n.plan.Create = append(n.plan.Create, slice)
	return slice, nil
}

// Update notes a slice to update.
func (n *notes) Update(_ context.Context, slice *discoveryv1.EndpointSlice, _ metav1.UpdateOptions) (
	*discoveryv1.EndpointSlice, error) {
	n.plan.Update = append(n.plan.Update, slice)
	return slice, nil
}

// Delete notes a slice to delete.
func (n *notes) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	n.plan.Delete = append(n.plan.Delete, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return nil
}

// nodes are those of a decision.
type nodes struct {
	corelisters.NodeLister
	known map[string]*corev1.Node
}

// Get returns a node.
func (n nodes) Get(name string) (*corev1.Node, error) {
	if node := n.known[name]; node != nil {
		return node, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}
