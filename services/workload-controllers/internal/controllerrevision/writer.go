package controllerrevision

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// ErrCollision says that a new revision's name belongs to another object. The owner counts it in its status.
var ErrCollision = errors.New("the name of the ControllerRevision is taken")

// Rule is what a Writer may have to do.
var Rule = rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"},
	Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}

// Writer writes the histories of one controller's owners.
type Writer struct {
	// Write has the kind "controllerrevision".
	Write *write.Writer
	// Live reads from the apiserver.
	Live client.Reader
}

// NewWriter returns that of a controller that is being set up.
func NewWriter(s *controller.Setup, own *write.Own) *Writer {
	return &Writer{Write: own.Gated("controllerrevision", &appsv1.ControllerRevision{}), Live: s.Live}
}

// Apply carries out a plan. It returns ErrCollision when the new revision's name is another's, and pass.ErrStale when
// the revision exists and the cache does not show it yet.
func (w *Writer) Apply(ctx context.Context, in In, plan Plan) error {
	owner := in.Owner.UID
	switch {
	case !plan.Claims.Settled():
		return claim.Settle(ctx, w.Live, w.Write, in.Owner, plan.Claims)
	case plan.Create != nil:
		return w.create(ctx, owner, plan.Create)
	case plan.Renumber != nil:
		if err := w.Write.Update(ctx, owner, plan.Renumber.DeepCopy()); err != nil {
			return fmt.Errorf("numbering ControllerRevision %s: %w", plan.Renumber.Name, err)
		}
	}
	return nil
}

// create makes a revision; none is needed in a namespace that is on its way out.
func (w *Writer) create(ctx context.Context, owner types.UID, planned *appsv1.ControllerRevision) error {
	err := w.Write.Create(ctx, owner, planned.DeepCopy())
	switch {
	case err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsAlreadyExists(err):
		return w.resolve(ctx, owner, planned)
	default:
		return fmt.Errorf("creating ControllerRevision %s: %w", planned.Name, err)
	}
}

// resolve finds out whose the revision is that has the planned one's name.
func (w *Writer) resolve(ctx context.Context, owner types.UID, planned *appsv1.ControllerRevision) error {
	existing := &appsv1.ControllerRevision{}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(planned), existing); err != nil {
		return fmt.Errorf("looking at the ControllerRevision that has the name: %w", err)
	}
	if !isSame(planned, existing) {
		return fmt.Errorf("%w: %s", ErrCollision, planned.Name)
	}
	w.Write.Gate.Await(owner, existing.UID, gate.Written(w.Write.Store, existing))
	return pass.ErrStale
}

// Delete ends revisions, provided that they are still as they were observed.
func (w *Writer) Delete(ctx context.Context, owner types.UID, surplus []*appsv1.ControllerRevision) error {
	for _, r := range surplus {
		if err := w.Write.Delete(ctx, owner, r.DeepCopy()); err != nil {
			return fmt.Errorf("deleting ControllerRevision %s: %w", r.Name, err)
		}
	}
	return nil
}
