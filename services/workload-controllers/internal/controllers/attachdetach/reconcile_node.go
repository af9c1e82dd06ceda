package attachdetach

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// passNode updates a node's record of attached volumes, and ends unneeded attachments.
func (c *Controller) passNode(ctx context.Context, about target) (time.Duration, error) {
	in := c.lookAtNode(about.node)
	plan := DecideNode(in)
	if err := c.record(ctx, about.owner(), in.Node, plan); err != nil {
		return 0, err
	}
	c.tell(plan.Events)
	if err := c.detach(ctx, about.owner(), in, plan.Detach); err != nil {
		return 0, err
	}
	return pass.Until(plan.Wake, in.Now), nil
}

// lookAtNode adds the time, the settings and the times of last use to what the caches show.
func (c *Controller) lookAtNode(name string) NodeInput {
	in := c.stores.lookAtNode(name)
	in.Now, in.KeepForever = c.now(), c.settings.KeepForever
	c.unused.note(&in)
	return in
}

// record writes the attached volumes into the Node, at the version that was decided on. It first asks the
// apiserver whether the volumes that it adds are attached: a cache may show an attachment that has ended.
func (c *Controller) record(ctx context.Context, owner types.UID, node *corev1.Node, plan NodePlan) error {
	if !plan.Record {
		return nil
	}
	for _, a := range plan.Added {
		now := &storagev1.VolumeAttachment{}
		err := c.live.Get(ctx, client.ObjectKeyFromObject(a.Object), now)
		switch {
		case apierrors.IsNotFound(err) || err == nil && (now.UID != a.Object.UID || !isAttached(now)):
			return pass.ErrStale
		case err != nil:
			return fmt.Errorf("looking at VolumeAttachment %s: %w", a.Object.Name, err)
		}
	}
	list := plan.Attached
	if list == nil {
		list = []corev1.AttachedVolume{}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion},
		"status":   map[string]any{"volumesAttached": list},
	})
	if err != nil {
		return fmt.Errorf("writing down what is attached: %w", err)
	}
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	err = write.Do(c.gate, owner, c.nodes.Kind+".status", func() (types.UID, gate.Seen, error) {
		err := c.nodes.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
		return node.UID, gate.Written(c.nodes.Store, target), err
	})
	switch {
	case apierrors.IsNotFound(err):
		return pass.ErrStale
	case err != nil:
		return fmt.Errorf("writing what is attached to node %s: %w", node.Name, err)
	}
	return nil
}

// detach ends attachments. It reads the Node from the apiserver and decides again: since the record no longer
// lists the volume, a node that starts to use it from now on waits until the record lists it again.
func (c *Controller) detach(ctx context.Context, owner types.UID, in NodeInput, all []Detach) error {
	if len(all) == 0 {
		return nil
	}
	node := &corev1.Node{}
	switch err := c.live.Get(ctx, client.ObjectKey{Name: in.Name}, node); {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return fmt.Errorf("looking at node %s: %w", in.Name, err)
	}
	in.Node = node
	again := DecideNode(in)
	if err := c.confirmPods(ctx, in.Name, again.Detach); err != nil {
		return err
	}
	for _, d := range all {
		agreed := slices.ContainsFunc(again.Detach, func(a Detach) bool { return a.Object.UID == d.Object.UID })
		if !agreed || node != nil && lists(node, d.Volume) {
			return pass.ErrStale
		}
		if err := c.attach.Delete(ctx, owner, d.Object); err != nil {
			return fmt.Errorf("ending VolumeAttachment %s: %w", d.Object.Name, err)
		}
	}
	return nil
}

// confirmPods asks the apiserver whether the node really has no Pod with a volume that is detached although the
// node did not report it as unused.
func (c *Controller) confirmPods(ctx context.Context, node string, all []Detach) error {
	if !slices.ContainsFunc(all, func(d Detach) bool { return d.Why != Free }) {
		return nil
	}
	pods := &corev1.PodList{}
	if err := c.live.List(ctx, pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return fmt.Errorf("reading the Pods of node %s: %w", node, err)
	}
	for i := range pods.Items {
		if podview.IsTerminal(&pods.Items[i]) {
			continue
		}
		for _, volume := range c.stores.volumesOf(&pods.Items[i]) {
			if slices.ContainsFunc(all, func(d Detach) bool { return d.Volume == volume }) {
				return pass.ErrStale
			}
		}
	}
	return nil
}
