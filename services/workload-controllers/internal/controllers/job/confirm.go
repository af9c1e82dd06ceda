package job

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
)

// confirm asks the apiserver about Pods whose cached state may be older than this process's takeover: the previous
// process may have counted them since. It ends the pass if the cache is behind.
func (c *Controller) confirm(ctx context.Context, in Input, plan Plan) error {
	if len(plan.Recorded)+len(plan.Vanished) == 0 {
		return nil
	}
	since, err := c.tookOverAt(ctx)
	if err != nil {
		return err
	}
	isOld := func(pod *corev1.Pod) bool { return !gate.AtLeast(pod.ResourceVersion, since) }
	if len(plan.Vanished) == 0 && !slices.ContainsFunc(plan.Recorded, isOld) {
		return nil
	}
	pods, err := c.list(ctx, client.InNamespace(in.Job.Namespace), client.MatchingLabelsSelector{Selector: in.Selector})
	if err != nil {
		return err
	}
	tracked := map[types.UID]bool{}
	for i := range pods.Items {
		tracked[pods.Items[i].UID] = slices.Contains(pods.Items[i].Finalizers, tracking)
	}
	if !plan.agrees(tracked) {
		return pass.ErrStale
	}
	return nil
}

// tookOverAt returns a resource version of the Pods later than every write of another process.
func (c *Controller) tookOverAt(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == "" {
		pods, err := c.list(ctx, client.Limit(1))
		if err != nil {
			return "", err
		}
		c.since = pods.ResourceVersion
	}
	return c.since, nil
}

// list reads the existing Pods from the apiserver.
func (c *Controller) list(ctx context.Context, options ...client.ListOption) (*metav1.PartialObjectMetadataList,
	error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.live.List(ctx, pods, options...); err != nil {
		return nil, fmt.Errorf("asking the server for the Pods: %w", err)
	}
	return pods, nil
}
