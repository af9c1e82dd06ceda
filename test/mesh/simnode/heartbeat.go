package simnode

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Silence cuts a node off: its containers go on, but it hears of nothing and says nothing.
func (n *Nodes) Silence(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[name] = true
}

// Return ends a silence: the node says that it is ready and catches up with its Pods.
func (n *Nodes) Return(ctx context.Context, name string) error {
	n.mu.Lock()
	delete(n.silent, name)
	n.mu.Unlock()
	if err := report(ctx, n.client, name); err != nil {
		return err
	}
	for _, object := range n.pods.List() {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName == name {
			n.queue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return nil
}

func (n *Nodes) isSilent(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent[name]
}

// beat renews the Leases of all nodes that are not silent until ctx ends.
func (n *Nodes) beat(ctx context.Context, o Options) {
	ticker := time.NewTicker(o.Renew)
	defer ticker.Stop()
	held := map[string]*coordinationv1.Lease{}
	for {
		for _, name := range o.Names {
			if !n.isSilent(name) {
				n.renew(ctx, name, held)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// renew renews one Lease from what this node wrote last, as a nodeagent does. One that could not be renewed is read, or
// made, the next time.
func (n *Nodes) renew(ctx context.Context, name string, held map[string]*coordinationv1.Lease) {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := held[name], error(nil)
	if lease == nil {
		lease, err = leases.Get(ctx, name, metav1.GetOptions{})
	}
	now := metav1.NowMicro()
	switch {
	case err == nil:
		lease.Spec.RenewTime = &now
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	case apierrors.IsNotFound(err):
		lease, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name), RenewTime: &now}}, metav1.CreateOptions{})
	}
	delete(held, name)
	if err == nil {
		held[name] = lease
	}
}
