package evict

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// every is how often Pods are measured, as docs/explanation/guarantees.md promises. If a round takes long, the
// pause after it is restFactor times that: the node's disk belongs to the Pods.
const (
	every      = 10 * time.Second
	restFactor = 10
)

// Config is what Run needs.
type Config struct {
	Log *zap.Logger
	// Pods returns the Pods of the node, Meter measures them.
	Pods  func() []*corev1.Pod
	Meter diskusage.Meter
	// IsCritical reports whether a Pod is never evicted for a limit.
	IsCritical func(*corev1.Pod) bool
	// Parts returns which parts of a Pod are on the file system that the limits apply to.
	Parts func(ctx context.Context) diskusage.Parts
	// Evict ends a Pod.
	Evict func(uid types.UID, why podstate.Outcome)
}

// Run measures the Pods until ctx ends.
func Run(ctx context.Context, c Config) {
	pause := every
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		for _, pod := range c.Pods() {
			c.look(ctx, pod)
		}
		pause = max(every, restFactor*time.Since(began))
	}
}

// look measures a Pod and evicts it if it uses too much.
func (c Config) look(ctx context.Context, pod *corev1.Pod) {
	if c.IsCritical(pod) {
		return
	}
	why, err := c.why(ctx, pod)
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("measuring what a Pod takes of the disk failed, trying again",
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
	}
	if why != nil {
		c.Evict(pod.UID, *why)
	}
}

// why measures only as much of a Pod as its limits require.
func (c Config) why(ctx context.Context, pod *corev1.Pod) (*podstate.Outcome, error) {
	for _, v := range limited(pod) {
		usage, err := c.Meter.Volume(ctx, pod, v.Name, diskusage.Enough{Bytes: v.EmptyDir.SizeLimit.Value()})
		if err != nil {
			return nil, err
		}
		if why := decideVolume(v, usage); why != nil {
			return why, nil
		}
	}
	limit, ok := podLimit(pod)
	if !ok {
		return nil, nil
	}
	parts := c.Parts(ctx)
	usage, err := c.Meter.Pod(ctx, pod, parts, diskusage.Enough{Bytes: max(limit.Value(), 1)})
	if err != nil {
		return nil, err
	}
	return decidePod(pod, &usage, parts), nil
}
