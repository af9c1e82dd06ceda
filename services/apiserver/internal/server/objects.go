package server

import (
	"context"
	"errors"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// storedObjects reads from the watch caches of the server's own stores what tokens are bound to, where nodes are and
// what runs on them. It is filled in when the stores are open, before anything is served.
type storedObjects struct {
	storages map[string]genericrest.Storage
}

var _ satoken.Objects = &storedObjects{}

// open takes the stores of the groups that are read: the core, what stands behind Services, what attaches volumes, what
// tells of devices, and by what daemons tell that they work.
func (o *storedObjects) open(group string, storages map[string]genericrest.Storage) {
	switch group {
	case corev1.GroupName, coordinationv1.GroupName, discoveryv1.GroupName, resourcev1.GroupName,
		storagev1.GroupName:
	default:
		return
	}
	if o.storages == nil {
		o.storages = map[string]genericrest.Storage{}
	}
	maps.Copy(o.storages, storages)
}

// fromCache accepts what the watch cache has.
var fromCache = &metav1.GetOptions{ResourceVersion: "0"}

// ServiceAccount implements satoken.Objects.
func (o *storedObjects) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return stored[*corev1.ServiceAccount](ctx, o, "serviceaccounts", namespace, name)
}

// Pod implements satoken.Objects.
func (o *storedObjects) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return stored[*corev1.Pod](ctx, o, "pods", namespace, name)
}

// Secret implements satoken.Objects.
func (o *storedObjects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return stored[*corev1.Secret](ctx, o, "secrets", namespace, name)
}

// CurrentServiceAccount implements satoken.Objects.
func (o *storedObjects) CurrentServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount,
	error) {
	return read[*corev1.ServiceAccount](ctx, o, "serviceaccounts", namespace, name, &metav1.GetOptions{})
}

// CurrentSecret implements satoken.Objects.
func (o *storedObjects) CurrentSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return read[*corev1.Secret](ctx, o, "secrets", namespace, name, &metav1.GetOptions{})
}

// Node implements satoken.Objects.
func (o *storedObjects) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return stored[*corev1.Node](ctx, o, "nodes", "", name)
}

// CurrentNode is Node, which asks the store for one that the cache has not, or not yet.
func (o *storedObjects) CurrentNode(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := o.Node(ctx, name)
	if apierrors.IsNotFound(err) {
		return read[*corev1.Node](ctx, o, "nodes", "", name, &metav1.GetOptions{})
	}
	return node, err
}

// Namespace is the device.Namespaces of claims. A label of it that was written a moment ago counts.
func (o *storedObjects) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return read[*corev1.Namespace](ctx, o, "namespaces", "", name, &metav1.GetOptions{})
}

// Pods are the Pods of a namespace, or of all, whose labels match.
func (o *storedObjects) Pods(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Pod, error) {
	list, err := listed[*corev1.PodList](ctx, o, "pods", namespace, selector)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Nodes are the nodes whose labels match.
func (o *storedObjects) Nodes(ctx context.Context, selector labels.Selector) ([]corev1.Node, error) {
	list, err := listed[*corev1.NodeList](ctx, o, "nodes", "", selector)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// PodsOnNode is the node.Pods of the Node authorizer.
func (o *storedObjects) PodsOnNode(ctx context.Context, node, namespace, resourceVersion string) ([]corev1.Pod, error) {
	lister, ok := o.storages["pods"].(genericrest.Lister)
	if !ok {
		return nil, notOpen("pods")
	}
	list, err := lister.List(genericapirequest.WithNamespace(ctx, namespace), &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node), ResourceVersion: resourceVersion,
	})
	if err != nil {
		return nil, err
	}
	return list.(*corev1.PodList).Items, nil
}

// Service implements aggregation.Objects.
func (o *storedObjects) Service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	service, err := stored[*corev1.Service](ctx, o, "services", namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return service, err
}

// Slices are the EndpointSlices of a Service.
func (o *storedObjects) Slices(ctx context.Context, namespace, service string) ([]discoveryv1.EndpointSlice, error) {
	list, err := listed[*discoveryv1.EndpointSliceList](ctx, o, "endpointslices", namespace,
		labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}))
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Leases implements componentstatus.Leases.
func (o *storedObjects) Leases(ctx context.Context, namespace string) ([]coordinationv1.Lease, error) {
	list, err := listed[*coordinationv1.LeaseList](ctx, o, "leases", namespace, labels.Everything())
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Volume is the node.Volume of the Node authorizer.
func (o *storedObjects) Volume(ctx context.Context, name, resourceVersion string) (*corev1.PersistentVolume, error) {
	return read[*corev1.PersistentVolume](ctx, o, "persistentvolumes", "", name,
		&metav1.GetOptions{ResourceVersion: resourceVersion})
}

// Claim is the node.Claim of the Node authorizer.
func (o *storedObjects) Claim(ctx context.Context, namespace, name, resourceVersion string) (
	*corev1.PersistentVolumeClaim, error) {
	return read[*corev1.PersistentVolumeClaim](ctx, o, "persistentvolumeclaims", namespace, name,
		&metav1.GetOptions{ResourceVersion: resourceVersion})
}

// Attachment is the node.Attachment of the Node authorizer.
func (o *storedObjects) Attachment(ctx context.Context, name, resourceVersion string) (*storagev1.VolumeAttachment,
	error) {
	return read[*storagev1.VolumeAttachment](ctx, o, "volumeattachments", "", name,
		&metav1.GetOptions{ResourceVersion: resourceVersion})
}

// Slice is the node.Slice of the Node authorizer.
func (o *storedObjects) Slice(ctx context.Context, name, resourceVersion string) (*resourcev1.ResourceSlice, error) {
	return read[*resourcev1.ResourceSlice](ctx, o, "resourceslices", "", name,
		&metav1.GetOptions{ResourceVersion: resourceVersion})
}

func stored[O runtime.Object](ctx context.Context, o *storedObjects, resource, namespace, name string) (O, error) {
	return read[O](ctx, o, resource, namespace, name, fromCache)
}

func read[O runtime.Object](ctx context.Context, o *storedObjects, resource, namespace, name string,
	options *metav1.GetOptions) (O, error) {
	var none O
	getter, ok := o.storages[resource].(genericrest.Getter)
	if !ok {
		return none, notOpen(resource)
	}
	obj, err := getter.Get(genericapirequest.WithNamespace(ctx, namespace), name, options)
	if err != nil {
		return none, err
	}
	return obj.(O), nil
}

func listed[L runtime.Object](ctx context.Context, o *storedObjects, resource, namespace string,
	selector labels.Selector) (L, error) {
	var none L
	lister, ok := o.storages[resource].(genericrest.Lister)
	if !ok {
		return none, notOpen(resource)
	}
	list, err := lister.List(genericapirequest.WithNamespace(ctx, namespace),
		&metainternalversion.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return none, err
	}
	return list.(L), nil
}

func notOpen(resource string) error {
	return errors.New("reading " + resource + ": the store is not open yet")
}
