// Package noderestriction is the admission plugin NodeRestriction: whoever has taken over one Node can write nothing
// about the others. A Node writes its own Node and CSINode objects, the status of its Pods, its Lease and the slices of
// its devices, lets go of volumes of its own, and says how far the volumes of its Pods' claims have grown.
package noderestriction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/election"
	"keelson.dev/services/apiserver/internal/nodeidentity"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "NodeRestriction"

// Plugin checks what Nodes write. It works on the final objects, so that no other plugin can change them afterwards.
type Plugin struct {
	*admission.Handler
	client     kubernetes.Interface
	authorizer authorizer.Authorizer
	nodes      Nodes
	services   []netip.Prefix
}

// Nodes reads all Nodes, which it must not change. What was written a moment ago may be missing.
type Nodes func(ctx context.Context) ([]corev1.Node, error)

// WantsNodes is what a plugin implements that reads all Nodes.
type WantsNodes interface {
	SetNodes(nodes Nodes)
}

// WantsServiceRanges is what a plugin implements that knows of which ranges Services get their addresses.
type WantsServiceRanges interface {
	SetServiceRanges(ranges []netip.Prefix)
}

// allocatorLease is held by who gives Nodes their ranges of Pods, if there is one.
const allocatorLease = "workload-controllers.nodeipam"

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
	_ initializer.WantsAuthorizer            = &Plugin{}
	_ WantsNodes                             = &Plugin{}
	_ WantsServiceRanges                     = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}, nil
	})
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetAuthorizer implements WantsAuthorizer.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// SetNodes implements WantsNodes.
func (p *Plugin) SetNodes(nodes Nodes) { p.nodes = nodes }

// SetServiceRanges implements WantsServiceRanges.
func (p *Plugin) SetServiceRanges(ranges []netip.Prefix) { p.services = ranges }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.client == nil:
		return errors.New("it has no client")
	case p.authorizer == nil:
		return errors.New("it has nobody to ask for rights")
	case p.nodes == nil:
		return errors.New("it has no way to read Nodes")
	}
	return nil
}

// Validate refuses what a Node has no business to write. It has nothing to say about other users.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	user := a.GetUserInfo()
	if user == nil {
		return nil
	}
	node, isNode := nodeidentity.Of(user)
	if !isNode {
		return nil
	}
	if node == "" {
		return admission.NewForbidden(a, fmt.Errorf("could not determine node from user %q", user.GetName()))
	}
	if err := p.check(ctx, node, a); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func (p *Plugin) check(ctx context.Context, node string, a admission.Attributes) error {
	switch a.GetResource().GroupResource() {
	case corev1.Resource("nodes"):
		return p.checkNode(ctx, node, a)
	case corev1.Resource("pods"):
		return p.checkPod(ctx, node, a)
	case coordinationv1.Resource("leases"):
		obj, _ := meta.Accessor(a.GetObject())
		return checkLease(node, a.GetNamespace(), nameOf(a.GetName(), obj))
	case corev1.Resource("serviceaccounts"):
		return p.checkToken(ctx, node, a)
	case corev1.Resource("persistentvolumes"):
		return checkVolumeWrite(node, a)
	case corev1.Resource("persistentvolumeclaims"):
		return p.checkClaimWrite(ctx, node, a)
	case certificatesv1.Resource("certificatesigningrequests"):
		asked, is := a.GetObject().(*certificatesv1.CertificateSigningRequest)
		if a.GetOperation() != admission.Create || a.GetSubresource() != "" || !is {
			return nil
		}
		return checkRequest(a.GetUserInfo().GetName(), asked)
	case resourcev1.Resource("resourceslices"):
		created, is := a.GetObject().(*resourcev1.ResourceSlice)
		if a.GetOperation() != admission.Create || !is {
			return nil
		}
		return checkSlice(node, created)
	case storagev1.Resource("csinodes"):
		obj, _ := meta.Accessor(a.GetObject())
		return checkDrivers(node, nameOf(a.GetName(), obj))
	}
	return nil
}

func checkVolumeWrite(node string, a admission.Attributes) error {
	updated, is := a.GetObject().(*corev1.PersistentVolume)
	old, was := a.GetOldObject().(*corev1.PersistentVolume)
	if a.GetOperation() != admission.Update || a.GetSubresource() != "" || !is || !was {
		return fmt.Errorf("unexpected operation %q, node %q can only update persistentvolumes", a.GetOperation(), node)
	}
	return checkVolume(node, updated, old)
}

// checkClaimWrite reads the volume of a claim only if a Node says that it has grown.
func (p *Plugin) checkClaimWrite(ctx context.Context, node string, a admission.Attributes) error {
	updated, is := a.GetObject().(*corev1.PersistentVolumeClaim)
	old, was := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	if a.GetOperation() != admission.Update || a.GetSubresource() != "status" || !is || !was {
		return fmt.Errorf("unexpected operation %q, node %q can only update the status of persistentvolumeclaims",
			a.GetOperation(), node)
	}
	if err := checkGrowth(node, updated, old); err != nil || !hasGrown(updated, old) {
		return err
	}
	var err error
	for _, version := range []string{"0", ""} { // the cache cannot refuse
		volume, readErr := p.client.CoreV1().PersistentVolumes().Get(ctx, old.Spec.VolumeName,
			metav1.GetOptions{ResourceVersion: version})
		if err = readErr; err == nil {
			err = checkSize(node, updated, volume)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

func (p *Plugin) checkNode(ctx context.Context, node string, a admission.Attributes) error {
	created, isNode := a.GetObject().(*corev1.Node)
	switch {
	case a.GetOperation() == admission.Create && isNode:
		if err := checkNewNode(node, created); err != nil {
			return err
		}
		if err := checkAddresses(node, created, nil, p.services); err != nil {
			return err
		}
		return p.checkClaims(ctx, node, newClaims(created, nil))
	case a.GetOperation() == admission.Update && isNode:
		old, ok := a.GetOldObject().(*corev1.Node)
		if !ok {
			return fmt.Errorf("unexpected type %T", a.GetOldObject())
		}
		if err := checkNodeUpdate(node, created, old); err != nil {
			return err
		}
		if err := checkAddresses(node, created, old, p.services); err != nil {
			return err
		}
		return p.checkClaims(ctx, node, newClaims(created, old))
	}
	return checkOwn(node, a.GetName())
}

// checkClaims reads the other Nodes only if a Node claims something new, which is rare.
func (p *Plugin) checkClaims(ctx context.Context, node string, c claims) error {
	if c.none() {
		return nil
	}
	others, err := p.nodes(ctx)
	if err != nil {
		return fmt.Errorf("reading the other nodes: %w", err)
	}
	allocator := ""
	if len(c.ranges) > 0 {
		lease, err := p.client.CoordinationV1().Leases(election.Namespace).Get(ctx, allocatorLease,
			metav1.GetOptions{ResourceVersion: "0"})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading who gives nodes their ranges: %w", err)
		}
		if err == nil && lease.Spec.HolderIdentity != nil {
			allocator = allocatorOf(election.Namespace+"/"+allocatorLease, *lease.Spec.HolderIdentity)
		}
	}
	return c.check(node, others, allocator)
}

func (p *Plugin) checkPod(ctx context.Context, node string, a admission.Attributes) error {
	old, hasOld := a.GetOldObject().(*corev1.Pod)
	pod, hasPod := a.GetObject().(*corev1.Pod)
	switch subresource := a.GetSubresource(); {
	case subresource == "eviction":
		evicted, err := p.pod(ctx, a.GetNamespace(), a.GetName())
		if err != nil {
			return err
		}
		return checkPodRemoval(node, "evict", evicted)
	case subresource == "status" && hasPod && hasOld:
		return checkPodStatus(node, pod, old)
	case subresource != "":
		return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", subresource)
	case a.GetOperation() == admission.Create && hasPod:
		return p.checkMirror(ctx, node, pod)
	case a.GetOperation() == admission.Delete && hasOld:
		return checkPodRemoval(node, "delete", old)
	}
	return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", a.GetOperation(), node)
}

// checkMirror looks up the Node that is to own the Pod.
func (p *Plugin) checkMirror(ctx context.Context, node string, pod *corev1.Pod) error {
	owner, err := p.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("node %q is not registered, it can not create pods", node)
	case err != nil:
		return fmt.Errorf("reading the node %s: %w", node, err)
	}
	return checkNewPod(node, owner.UID, pod)
}

// pod reads a Pod from the watch cache, which is at least as new as what the Node has seen.
func (p *Plugin) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := p.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}
