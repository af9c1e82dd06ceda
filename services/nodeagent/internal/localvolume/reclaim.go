package localvolume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/follow"
	names "keelson.dev/kit/localvolume"
	"keelson.dev/kit/wakeup"
)

// The delays before a failed attempt is repeated; each failure doubles the delay.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// callTimeout bounds one call of the API server.
	callTimeout = 10 * time.Second
)

// ReclaimerConfig is what a Reclaimer needs.
type ReclaimerConfig struct {
	Client kubernetes.Interface
	Log    *zap.Logger
	Store  *Store
	Node   string
}

// Reclaimer removes the folders of deleted volumes, and then the finalizers of their objects.
type Reclaimer struct {
	ReclaimerConfig
	volumes cache.SharedIndexInformer
	wake    wakeup.Signal
}

// NewReclaimer returns a Reclaimer that follows the volumes of its node.
func NewReclaimer(config ReclaimerConfig) *Reclaimer {
	own := informers.NewSharedInformerFactoryWithOptions(config.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{names.NodeLabel: config.Node}.String()
		}))
	return &Reclaimer{ReclaimerConfig: config, volumes: own.Core().V1().PersistentVolumes().Informer(),
		wake: wakeup.New()}
}

// Look makes Run check all volumes soon: one of them may have changed, or a Pod is gone.
func (r *Reclaimer) Look() {
	r.wake.Send()
}

// Run reclaims until ctx ends. Changes wake it, and it repeats what failed.
func (r *Reclaimer) Run(ctx context.Context) {
	_, err := r.volumes.AddEventHandler(follow.Changes(r.Look))
	if err != nil {
		return // only a stopped informer refuses
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.volumes.RunWithContext(ctx)
	}()
	defer func() { <-done }()
	swept, pause := false, firstPause
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := r.pass(ctx, &swept); err != nil && ctx.Err() == nil {
			r.Log.Warn("removing local volumes failed, trying again", zap.Duration("in", pause), zap.Error(err))
			again = time.After(pause)
			pause = min(2*pause, lastPause)
		} else {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-again:
		}
	}
}

// pass does all that is to be done now.
func (r *Reclaimer) pass(ctx context.Context, swept *bool) error {
	if !*swept {
		if err := r.Store.Sweep(); err != nil {
			return err
		}
		*swept = true
	}
	var problems []error
	for _, object := range r.volumes.GetStore().List() {
		if pv, ok := object.(*corev1.PersistentVolume); ok {
			problems = append(problems, r.reclaim(ctx, pv))
		}
	}
	return errors.Join(problems...)
}

func (r *Reclaimer) reclaim(ctx context.Context, pv *corev1.PersistentVolume) error {
	do := Decide(pv, r.Node)
	if do.Remove {
		err := r.Store.Remove(pv.Spec.CSI.VolumeHandle, pv.Name)
		if errors.Is(err, ErrInUse) {
			return nil // the end of the Pod wakes Run
		}
		if err != nil {
			return fmt.Errorf("removing the folder of PersistentVolume %s: %w", pv.Name, err)
		}
		r.Log.Info("removed the folder of a PersistentVolume", zap.String("persistentVolume", pv.Name))
	}
	if !do.Release {
		return nil
	}
	return r.release(ctx, pv)
}

// release removes the finalizer from the object, in exactly the version that the decision was made on.
func (r *Reclaimer) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	left := slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool { return f == names.FolderFinalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pv.UID, "resourceVersion": pv.ResourceVersion, "finalizers": left}})
	if err != nil {
		return fmt.Errorf("encoding the finalizers of PersistentVolume %s: %w", pv.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = failpoint.Around("nodeagent/localvolume.release", func() error {
		_, err := r.Client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or decided again from a newer version
	}
	if err != nil {
		return fmt.Errorf("letting PersistentVolume %s go: %w", pv.Name, err)
	}
	return nil
}
