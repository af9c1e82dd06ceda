package csivolume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/csiplugin"
)

// The reasons of events are the kubelet's.
const (
	reasonGrown    = "FileSystemResizeSuccessful"
	reasonNotGrown = "VolumeResizeFailed"
)

// wish is a volume of a Pod that is to be compared with what the API says about it.
type wish struct {
	pod    *corev1.Pod
	volume *corev1.Volume
}

// wishes are what is to be compared, in memory: every Pod's volumes are compared when an agent starts.
type wishes struct {
	mu sync.Mutex // guards the fields below
	of map[place]wish
	// waiting are the sizes that drivers have refused as long as a Pod has the volume.
	waiting map[place]int64
}

func (w *wishes) add(at place, one wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[place]wish{}
	}
	w.of[at] = one
}

// restore adds a wish again after it failed, unless a newer one has come.
func (w *wishes) restore(at place, one wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, newer := w.of[at]; !newer {
		w.of[at] = one
	}
}

// take removes a wish and returns it.
func (w *wishes) take(at place) (one wish, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok = w.of[at]
	delete(w.of, at)
	return one, ok
}

// drop forgets what there is about a volume that a Pod has no longer.
func (w *wishes) drop(at place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, at)
	delete(w.waiting, at)
}

func (w *wishes) places() []place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.of))
}

// wait notes that a volume can have a size only when the Pod has it no longer.
func (w *wishes) wait(at place, size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[place]int64{}
	}
	w.waiting[at] = size
}

func (w *wishes) waits(at place, size int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting[at] == size
}

// Compare has Run compare a published volume of a Pod with what the API says about it, and grow it if it has grown in
// the storage. name is the name of the PersistentVolume.
func (v *Volumes) Compare(pod *corev1.Pod, volume *corev1.Volume, name string) {
	v.wishes.add(place{pod.UID, name}, wish{pod, volume})
	v.lookForDue()
}

// compare compares one volume, and grows it if it has to grow.
func (v *Volumes) compare(ctx context.Context, at place) error {
	w, ok := v.wishes.take(at)
	if r, begun := v.of(at); !ok || !begun || !r.Published {
		return nil
	}
	err := v.follow(ctx, at, w)
	if err != nil {
		v.wishes.restore(at, w)
	}
	return err
}

func (v *Volumes) follow(ctx context.Context, at place, w wish) error {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	claim, err := v.Objects.Claim(reading, w.pod.Namespace, podview.ClaimName(w.pod, w.volume))
	var pv *corev1.PersistentVolume
	if err == nil {
		pv, err = v.Objects.PersistentVolume(reading, at.pod, at.name)
	}
	if apierrors.IsNotFound(err) || err == nil && pv.Spec.CSI == nil {
		return nil // the Pod keeps what it has
	}
	if err != nil {
		return fmt.Errorf("comparing volume %s with the API: %w", at.name, err)
	}
	s := OfVolume(w.pod, w.volume, pv)
	r, err := v.complete(at, s, claim)
	if err != nil || r.id() != s.id() || s.ReadOnly {
		return err
	}
	g := growing(claim, pv, r.Size)
	if g == nil || v.wishes.waits(at, bytesOf(g.to)) {
		return nil
	}
	return v.growPublished(ctx, s, at)
}

// complete returns the record of a volume, with what an older agent has not written.
func (v *Volumes) complete(at place, s Source, claim *corev1.PersistentVolumeClaim) (record, error) {
	r, begun := v.of(at)
	if !begun || r.Claim != "" && r.Size != 0 {
		return r, nil
	}
	r.Claim = s.Claim
	if r.Size == 0 {
		r.Size = sizeOf(claim)
	}
	return r, v.amend(at, func(known *record) { known.Claim, known.Size = r.Claim, r.Size })
}

// growPublished grows a volume that containers may be using.
func (v *Volumes) growPublished(ctx context.Context, s Source, at place) error {
	driver, err := v.Driver(s.Driver)
	if err != nil || !driver.Can().Expand {
		return err
	}
	c := call{Source: s, can: driver.Can(), staging: v.staging(s.id()), target: v.published(at, s.Block)}
	if c.driver, err = v.object(ctx, s.Driver); err != nil {
		return err
	}
	unlock, err := v.locks.lock(ctx, s.id())
	if err != nil {
		return err
	}
	defer unlock()
	if r, begun := v.of(at); !begun || !r.Published {
		return nil
	}
	// Not cancelled half-way: what a driver has begun would go on.
	_, err = v.grow(context.WithoutCancel(ctx), driver, c, c.target)
	return err
}

// grow grows a volume that is staged or published at a path, if it still has to grow, and writes that to the claim. It
// returns the size that the volume then has, in bytes; 0 if it has not grown. Only an error is worth another attempt.
func (v *Volumes) grow(ctx context.Context, driver Driver, c call, path string) (int64, error) {
	claim, pv, err := v.current(ctx, c)
	if err != nil {
		return 0, err
	}
	held := c.Size
	if r, begun := v.of(c.at()); begun && r.Size != 0 {
		held = r.Size
	}
	g := growing(claim, pv, held)
	if g == nil {
		return 0, nil
	}
	if c.expandSecrets, err = v.secret(ctx, c.ExpandSecret); err != nil {
		return 0, err
	}
	if claim, err = v.writeClaim(ctx, *g, claim, statusBefore(claim)); err != nil {
		return 0, err
	}
	err = failpoint.Around("nodeagent/csi.expand", func() error {
		return driver.Expand(ctx, c.expandRequest(path, g.to))
	})
	of := outcomeOf(err)
	if of == grown {
		if err := v.resized(c.id(), bytesOf(g.to)); err != nil {
			return 0, err
		}
	}
	message := ""
	if err != nil {
		message = err.Error()
	}
	_, writeErr := v.writeClaim(ctx, *g, claim, statusAfter(claim, g.to, of, message, v.Now()))
	v.tell(c, claim, of, message)
	switch of {
	case grown:
		return bytesOf(g.to), writeErr
	case inUse:
		v.wishes.wait(c.at(), bytesOf(g.to))
		return 0, writeErr
	case infeasible:
		return 0, writeErr
	}
	return 0, errors.Join(err, writeErr)
}

// outcomeOf returns what the result of a call means.
func outcomeOf(err error) outcome {
	if err == nil {
		return grown
	}
	var refusal *csiplugin.Refusal
	if !errors.As(err, &refusal) {
		return unclear
	}
	switch refusal.Code {
	case codes.FailedPrecondition:
		return inUse
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		return infeasible
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return unclear
	}
	return failed
}

// current reads a volume and its claim.
func (v *Volumes) current(ctx context.Context, c call) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume,
	error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	claim, err := v.Objects.ClaimNow(ctx, c.Pod.Namespace, c.Claim)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the claim of volume %s: %w", c.Name, err)
	}
	pv, err := v.Objects.VolumeNow(ctx, c.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading volume %s: %w", c.Name, err)
	}
	return claim, pv, nil
}

// writeClaim gives a claim a status, and returns the claim with it. A claim whose growth was noted is left alone.
func (v *Volumes) writeClaim(ctx context.Context, g growth, claim *corev1.PersistentVolumeClaim,
	next *corev1.PersistentVolumeClaimStatus) (*corev1.PersistentVolumeClaim, error) {
	if g.noted {
		return claim, nil
	}
	patch, err := patchOf(claim, next)
	if err != nil || patch == nil {
		return claim, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var written *corev1.PersistentVolumeClaim
	err = failpoint.Around("nodeagent/csi.claim", func() (err error) {
		written, err = v.Objects.PatchClaimStatus(ctx, claim.Namespace, claim.Name, patch)
		return err
	})
	if err != nil {
		return claim, fmt.Errorf("writing how far claim %s has grown: %w", claim.Name, err)
	}
	return written, nil
}

// tell records what became of a growth.
func (v *Volumes) tell(c call, claim *corev1.PersistentVolumeClaim, of outcome, message string) {
	e := events.Warning(reasonNotGrown, "NodeExpandVolume failed for volume %q: %s", c.Name, message)
	if of == grown {
		e = events.Normal(reasonGrown, "NodeExpandVolume succeeded for volume %q", c.Name)
	} else {
		v.Log.Warn("a CSI volume does not grow", zap.String("volume", c.Name), zap.String("driver", c.Source.Driver),
			zap.String("error", message))
	}
	v.Events.Record(c.Pod, "", e)
	v.Events.RecordClaim(claim, e)
}
