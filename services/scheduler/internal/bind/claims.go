package bind

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Preparation is what the claims of a Pod get before it is bound to the node.
type Preparation struct {
	Pod   *corev1.Pod
	Node  string
	Steps []volumes.Step
	// Decided is when the node was chosen.
	Decided time.Time
}

// Prepared says what became of a Preparation: what was written, and why not all of it.
type Prepared struct {
	Preparation
	Claims  []*corev1.PersistentVolumeClaim
	Volumes []*corev1.PersistentVolume
	Err     error
}

// Prepare starts to write what claims get, and returns at once while fewer than MaxInFlight writers are under way. It
// calls report, from any goroutine, with the outcome.
func (b *Binder) Prepare(ctx context.Context, p Preparation, report func(Prepared)) {
	b.slots <- struct{}{}
	go func() {
		out := b.prepare(context.WithoutCancel(ctx), p)
		<-b.slots
		report(out)
	}()
}

// prepare writes each step into the very version that the decision read. A claim or volume that has changed since is
// decided on again.
func (b *Binder) prepare(ctx context.Context, p Preparation) Prepared {
	out := Prepared{Preparation: p}
	for _, step := range p.Steps {
		if step.Done() {
			continue
		}
		if err := b.prepareOne(ctx, step, &out); err != nil {
			out.Err = err
			return out
		}
	}
	return out
}

func (b *Binder) prepareOne(ctx context.Context, step volumes.Step, out *Prepared) error {
	ctx, cancel := context.WithTimeout(b.terms.Writing(ctx, out.Pod), requestTimeout)
	defer cancel()
	return failpoint.Around("scheduler/claims", func() error {
		if step.Volume != nil {
			return b.reserve(ctx, step, out)
		}
		return b.selectNode(ctx, step, out)
	})
}

// reserve gives a volume to a claim.
func (b *Binder) reserve(ctx context.Context, step volumes.Step, out *Prepared) error {
	meta := map[string]any{"uid": step.Volume.UID, "resourceVersion": step.Volume.ResourceVersion}
	if step.Volume.Spec.ClaimRef == nil {
		meta["annotations"] = map[string]string{volumes.BoundByController: "yes"}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{
		"claimRef": corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
			Namespace: step.Claim.Namespace, Name: step.Claim.Name, UID: step.Claim.UID}}})
	if err != nil {
		return fmt.Errorf("encoding the claim of persistentvolume %q: %w", step.Volume.Name, err)
	}
	written, err := b.volumes.PersistentVolumes().Patch(ctx, step.Volume.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("reserving persistentvolume %q for persistentvolumeclaim %q: %w", step.Volume.Name,
			step.Claim.Name, err)
	}
	out.Volumes = append(out.Volumes, written)
	return nil
}

// selectNode asks for a volume that can be used on the node.
func (b *Binder) selectNode(ctx context.Context, step volumes.Step, out *Prepared) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": step.Claim.UID, "resourceVersion": step.Claim.ResourceVersion,
		"annotations": map[string]string{volumes.SelectedNode: step.Node}}})
	if err != nil {
		return fmt.Errorf("encoding the node of persistentvolumeclaim %q: %w", step.Claim.Name, err)
	}
	written, err := b.volumes.PersistentVolumeClaims(step.Claim.Namespace).Patch(ctx, step.Claim.Name,
		types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("asking for a volume of persistentvolumeclaim %q: %w", step.Claim.Name, err)
	}
	out.Claims = append(out.Claims, written)
	return nil
}
