package evict

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/podstate"
)

// every is how often Pods are looked at, as docs/guarantees.md promises. Where a look takes long, the pause after it is
// restFactor times that: the node's disk belongs to the Pods.
const (
	every      = 10 * time.Second
	restFactor = 10
)

// Config is what an Evictor works with.
type Config struct {
	Log *zap.Logger
	// Pods returns those of the node, VolumeDir the folder of an emptyDir volume.
	Pods      func() []*corev1.Pod
	VolumeDir func(uid types.UID, volume string) string
	// Evict ends a Pod.
	Evict func(uid types.UID, why podstate.Outcome)
}

// Run looks at the Pods until ctx ends.
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

// look measures a Pod and evicts it if it holds too much.
func (c Config) look(ctx context.Context, pod *corev1.Pod) {
	for _, v := range limited(pod) {
		usage, err := measure(ctx, c.VolumeDir(pod.UID, v.Name), v.EmptyDir.SizeLimit.Value())
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("measuring a volume failed, trying again",
					zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.String("volume", v.Name),
					zap.Error(err))
			}
			continue
		}
		if why := decide(v, usage); why != nil {
			c.Evict(pod.UID, *why)
			return
		}
	}
}
