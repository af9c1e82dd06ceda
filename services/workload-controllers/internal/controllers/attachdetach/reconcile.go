package attachdetach

import (
	"context"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recheck is when to look again at objects newer than the cache, in case no event comes.
const recheck = time.Second

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller attaches volumes to nodes and detaches them.
type Controller struct {
	live     client.Reader
	stores   *stores
	settings Settings
	gate     *gate.Gate
	pvs      *write.Writer
	attach   *write.Writer
	nodes    *write.Writer
	unused   *unused
	recorder recorder
	now      func() time.Time
}

// Reconcile makes a pass over a volume or a node.
func (c *Controller) Reconcile(ctx context.Context, about target) (reconcile.Result, error) {
	if !c.gate.IsOpen(about.owner()) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	after, err := c.pass(ctx, about)
	if apierrors.IsConflict(err) || errors.Is(err, pass.ErrStale) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

func (c *Controller) pass(ctx context.Context, about target) (time.Duration, error) {
	if about.node != "" {
		return c.passNode(ctx, about)
	}
	in := c.stores.lookAtVolume(about.volume)
	return 0, c.applyVolume(ctx, in, DecideVolume(in))
}

// applyVolume attaches a volume to the nodes of the plan.
func (c *Controller) applyVolume(ctx context.Context, in VolumeInput, plan VolumePlan) error {
	c.tell(plan.Events)
	owner := target{volume: in.Volume}.owner()
	for _, node := range plan.Attach {
		if plan.Reserve {
			if err := c.reserve(ctx, owner, in, node); err != nil {
				return err
			}
		}
		made := newAttachment(in, node)
		switch err := c.attach.Create(ctx, owner, made); {
		case apierrors.IsAlreadyExists(err):
			return pass.ErrStale
		case err != nil:
			return fmt.Errorf("attaching PersistentVolume %s to node %s: %w", in.PV.Name, node, err)
		}
	}
	return nil
}

// reserve makes sure that no other controller is attaching the volume. It writes the PersistentVolume even if
// nothing changes: of two controllers that decided on the same version, or an older one, at most one gets past the
// write. It asks the apiserver for the attachment that an earlier reservation may have led to, since the cache may
// not show it.
func (c *Controller) reserve(ctx context.Context, owner types.UID, in VolumeInput, node string) error {
	if last := in.PV.Annotations[reservedFor]; last != "" && last != node {
		err := c.live.Get(ctx, client.ObjectKey{Name: in.Volume.attachment(last)}, &storagev1.VolumeAttachment{})
		if err == nil {
			return pass.ErrStale
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for the attachment of PersistentVolume %s to node %s: %w", in.PV.Name, last, err)
		}
	}
	pv := in.PV.DeepCopy()
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, reservedFor, node)
	if err := c.pvs.Update(ctx, owner, pv); err != nil {
		if apierrors.IsNotFound(err) {
			return pass.ErrStale
		}
		return fmt.Errorf("reserving PersistentVolume %s for node %s: %w", in.PV.Name, node, err)
	}
	return nil
}

// newAttachment asks the driver to attach the volume to the node.
func newAttachment(in VolumeInput, node string) *storagev1.VolumeAttachment {
	name := in.PV.Name
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: in.Volume.attachment(node)},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: in.Volume.Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
	}
}

func (c *Controller) tell(all []PodEvent) {
	for _, e := range all {
		c.recorder.Record(e.Pod, e.Event)
	}
}
