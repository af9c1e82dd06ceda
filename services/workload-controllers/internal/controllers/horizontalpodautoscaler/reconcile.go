package horizontalpodautoscaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/scales"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller scales targets by their load.
type Controller struct {
	client   client.Client // reads from the cache
	writer   *write.Writer
	pods     *podset.Index
	selected *podset.Selections // by the selectors of the targets
	scales   *scales.Client
	sources  sources
	recorder recorder
	settings Settings
	now      func() time.Time

	mu        sync.Mutex // guards histories
	histories map[types.NamespacedName]known
}

// known is the history of one autoscaler, identified by UID.
type known struct {
	of      types.UID
	history History
}

// soon gives the cache time to show the status that was just written.
const soon = time.Second

// steps are what a pass over an autoscaler consists of. It needs no gate: the apiserver refuses an outdated scale by
// its resource version.
func (c *Controller) steps() *pass.Steps[*autoscalingv2.HorizontalPodAutoscaler, Input, Plan] {
	return &pass.Steps[*autoscalingv2.HorizontalPodAutoscaler, Input, Plan]{
		Reader:  c.client,
		New:     func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(_ Input, plan Plan) time.Duration {
			if plan.Soon {
				return min(soon, c.settings.SyncPeriod)
			}
			return c.settings.SyncPeriod
		},
	}
}

// observe reads the input of a decision. All of it except the scale is shared with the cache.
func (c *Controller) observe(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler) (Input, bool, error) {
	in := Input{Now: c.now(), Settings: c.settings, Autoscaler: a, History: c.history(a)}
	if a.DeletionTimestamp != nil {
		return in, false, nil
	}
	in.Target = c.find(ctx, a)
	if ctx.Err() != nil {
		return in, false, ctx.Err()
	}
	c.observePods(&in)
	if in.NeedsMetrics() {
		in.Readings = c.sources.read(ctx, a, in.Target.Selector)
	}
	return in, true, ctx.Err()
}

// observePods looks up the Pods that the target selects, and the other autoscalers that select them.
func (c *Controller) observePods(in *Input) {
	a := in.Autoscaler
	// The generation is left out: the selector is the target's, and may change when the autoscaler does not.
	self := &metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, UID: a.UID}
	if in.Target.Err != nil || in.Target.SelectorErr != nil {
		c.selected.Remove(self)
		return
	}
	selector, err := metav1.ParseToLabelSelector(in.Target.Scale.Status.Selector)
	if err != nil {
		in.Target.SelectorErr = err
		return
	}
	c.selected.Put(self, selector)
	in.Pods = c.pods.Members(c.selected.Key(a.Namespace, a.Name))
	slices.SortFunc(in.Pods, func(x, y *corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	selecting := map[string]bool{}
	for _, pod := range in.Pods {
		for _, name := range c.selected.Matching(pod) {
			selecting[a.Namespace+"/"+name] = true
		}
	}
	if len(selecting) > 1 {
		for name := range selecting {
			in.Rivals = append(in.Rivals, name)
		}
		slices.Sort(in.Rivals)
	}
}

// apply carries out the plan: the scale first, since the status reports the result.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if plan.Rescale != nil {
		err := write.Do(nil, in.Autoscaler.UID, "horizontalpodautoscaler.scale", func() (types.UID, gate.Seen, error) {
			return "", nil, c.scales.Write(ctx,
				scales.Found{Resource: in.Target.Resource, Scale: in.Target.Scale}, plan.Rescale.To, Name)
		})
		if apierrors.IsConflict(err) || ctx.Err() != nil {
			return fmt.Errorf("scaling the target: %w", err)
		}
		plan = Settle(in, plan, err)
	}
	c.remember(in.Autoscaler, plan.History)
	for _, e := range plan.Events {
		c.recorder.Record(in.Autoscaler, e)
	}
	_, err := write.Status(ctx, c.writer, in.Autoscaler, plan.Status,
		func(a *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscalerStatus {
			return &a.Status
		})
	return err
}

func (c *Controller) history(a *autoscalingv2.HorizontalPodAutoscaler) History {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.histories[client.ObjectKeyFromObject(a)]; k.of == a.UID {
		return k.history
	}
	return History{}
}

func (c *Controller) remember(a *autoscalingv2.HorizontalPodAutoscaler, history History) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.histories[client.ObjectKeyFromObject(a)] = known{a.UID, history}
}

func (c *Controller) forget(a *autoscalingv2.HorizontalPodAutoscaler) {
	c.selected.Remove(a)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.histories, client.ObjectKeyFromObject(a))
}
