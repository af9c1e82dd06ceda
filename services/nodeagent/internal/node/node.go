// Package node maintains the node's objects in the API: its Node, with a status and heartbeats, and its Lease.
package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/wakeup"
)

// How often the node checks itself and renews its Lease, how long a Lease is valid, and how long a call may take.
const (
	lookEvery     = 10 * time.Second
	leaseDuration = 40 * time.Second
	callTimeout   = 10 * time.Second
)

// Config is what a Node needs.
type Config struct {
	Client kubernetes.Interface
	Log    *zap.Logger
	Facts  Facts
	// Health determines the health of the node.
	Health func(ctx context.Context) Health
	// Devices returns the node's resources of device plugins; nil for none.
	Devices func() (capacity, allocatable corev1.ResourceList)
	// Reported, unless nil, is called with the volumes that the API server now knows to be in use. It must not block.
	Reported func([]corev1.UniqueVolumeName)
	// Record writes an event about the node; nil writes none.
	Record func(events.Event)
}

// Node keeps the API's objects of this node up to date.
type Node struct {
	Config
	look wakeup.Signal

	mu sync.Mutex // guards all fields below
	// current is the API's last known Node.
	current *corev1.Node
	// writtenAt is when the status was last written.
	writtenAt time.Time
	lease     *coordinationv1.Lease
}

// New returns a Node that has not registered yet.
func New(config Config) *Node { return &Node{Config: config, look: wakeup.New()} }

// Look makes Run report at once if something has changed.
func (n *Node) Look() {
	n.look.Send()
}

// Register creates the Node or brings the known one up to date, and writes its status. It tries until it succeeds or
// ctx ends.
func (n *Node) Register(ctx context.Context) error {
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 7*time.Second) {
		err := n.register(ctx)
		if err == nil {
			err = n.report(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		n.Log.Warn("registering the node failed, trying again", zap.Error(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Run renews the Lease and reports the status until ctx ends.
func (n *Node) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := n.renew(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn("renewing the node's lease failed", zap.Error(err))
		}
		if err := n.report(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn("reporting the node's status failed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-n.look:
		case <-tick.C:
		}
	}
}

// facts returns what the node knows about itself now.
func (n *Node) facts() Facts {
	f := n.Facts
	if n.Devices != nil {
		f.Devices, f.UsableDevices = n.Devices()
	}
	return f
}

// Current returns the API's last known Node, with the current amounts. It must not be changed.
func (n *Node) Current() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.current
	if node == nil {
		node = register(n.Facts, nil)
	}
	out := *node
	_, out.Status.Allocatable = n.facts().resources(&node.Status)
	return &out
}

// Observe takes in a version of the Node from a watch, unless it is older than the known one: waiters for the
// node's volumes rely on the last write. If another client has changed resources, they are reported as allocatable
// at once, and so is the node's health if another client has marked the node unreachable.
func (n *Node) Observe(node *corev1.Node) {
	_, allocatable := n.facts().resources(&node.Status)
	n.mu.Lock()
	if isOlder(node, n.current) {
		n.mu.Unlock()
		return
	}
	before := n.current
	n.current = node
	n.mu.Unlock()
	n.record(cordoned(node.Name, before, node))
	if !apiequality.Semantic.DeepEqual(allocatable, node.Status.Allocatable) ||
		conditions.NodeIsSilent(node.Status.Conditions) {
		n.Look()
	}
}

func (n *Node) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes := n.Client.CoreV1().Nodes()
	old, err := nodes.Get(ctx, n.Facts.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	node := register(n.Facts, old)
	if !apiequality.Semantic.DeepEqual(old, node) {
		if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("updating the node: %w", err)
		}
	}
	n.Observe(node)
	return nil
}

func (n *Node) create(ctx context.Context) error {
	node := register(n.Facts, nil)
	node.Status = statusOf(n.facts(), n.Health(ctx), &corev1.NodeStatus{}, time.Now())
	return failpoint.Around("nodeagent/node.create", func() error {
		created, err := n.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating the node: %w", err)
		}
		n.Log.Info("registered the node", zap.String("node", created.Name))
		n.record(changes(created.Name, &corev1.NodeStatus{}, &created.Status))
		n.Observe(created)
		return nil
	})
}

// report writes the status if it is due. It registers a deleted Node again.
func (n *Node) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	health := n.Health(ctx)
	n.mu.Lock()
	base, writtenAt := n.current, n.writtenAt
	n.mu.Unlock()
	if base == nil {
		return n.register(ctx)
	}
	now := time.Now()
	next := statusOf(n.facts(), health, &base.Status, now)
	if !due(&base.Status, &next, writtenAt, now, apiequality.Semantic.DeepEqual) {
		n.tell(health)
		return nil
	}
	if err := failpoint.Inject("nodeagent/node.status.before"); err != nil {
		return err
	}
	live, err := n.Client.CoreV1().Nodes().Get(ctx, n.Facts.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n.register(ctx)
	}
	if err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	before := live.Status
	live.Status = statusOf(n.facts(), health, &before, now)
	stored, err := n.Client.CoreV1().Nodes().UpdateStatus(ctx, live, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("updating the node's status: %w", err)
	}
	n.mu.Lock()
	n.current, n.writtenAt = stored, now
	n.mu.Unlock()
	n.record(changes(stored.Name, &before, &stored.Status))
	n.tell(health)
	return failpoint.Inject("nodeagent/node.status.after")
}

// record writes events about the node.
func (n *Node) record(all []events.Event) {
	if n.Record == nil {
		return
	}
	for _, e := range all {
		n.Record(e)
	}
}

// tell reports which volumes the API server knows to be in use. Writes are sequential, so that none with other
// volumes is under way.
func (n *Node) tell(h Health) {
	if n.Reported != nil {
		n.Reported(h.VolumesInUse)
	}
}

// isOlder reports whether a version of the Node is known to be older than another.
func isOlder(node, than *corev1.Node) bool {
	if than == nil || node.UID != than.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, than.ResourceVersion)
	return err == nil && order < 0
}

// renew creates or renews the Lease. If another client has changed it, renew reads it again the next time.
func (n *Node) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := failpoint.Inject("nodeagent/lease.renew.before"); err != nil {
		return err
	}
	leases := n.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := n.lease, error(nil)
	if lease == nil {
		lease, err = leases.Get(ctx, n.Facts.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		n.lease, err = leases.Create(ctx, n.leaseAt(time.Now(), nil), metav1.CreateOptions{})
		if err != nil {
			n.lease = nil
			return fmt.Errorf("creating the lease: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the lease: %w", err)
	}
	n.lease, err = leases.Update(ctx, n.leaseAt(time.Now(), lease), metav1.UpdateOptions{})
	if err != nil {
		n.lease = nil // read again the next time
		return fmt.Errorf("updating the lease: %w", err)
	}
	return nil
}

func (n *Node) leaseAt(now time.Time, old *coordinationv1.Lease) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Facts.Name,
		Namespace: corev1.NamespaceNodeLease}}
	if old != nil {
		lease = old.DeepCopy()
	}
	lease.Spec.HolderIdentity = ptr.To(n.Facts.Name)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if node := n.Current(); node.UID != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name,
			UID: node.UID}}
	}
	return lease
}
