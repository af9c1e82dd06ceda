package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// rollout is all that there is of a Deployment at one time.
type rollout struct {
	deployment *appsv1.Deployment
	sets       map[types.UID]*appsv1.ReplicaSet
	pods       map[types.UID]*corev1.Pod
}

func (r rollout) copied() rollout {
	r.sets, r.pods = maps.Clone(r.sets), maps.Clone(r.pods)
	return r
}

// cluster holds one Deployment with all that belongs to it, and the two controllers that keep it.
type cluster struct {
	*world[rollout]
	deployments, replicas *process[rollout]
	// statuses is when the ReplicaSet controller wrote each status.
	statuses map[types.UID]time.Time
	// late lets the controllers see changes when they look; else they see all at once.
	late bool
	// wake is until when a ReplicaSet waits for nothing but time.
	wake time.Time
	// refusing nodes take no Pod.
	refusing bool
}

func newCluster(t *testing.T, seed uint64, replicas int32, surge, unavailable intstr.IntOrString) *cluster {
	limit, deadline := int32(2), int32(600)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 7)), rollout{
		sets: map[types.UID]*appsv1.ReplicaSet{}, pods: map[types.UID]*corev1.Pod{},
		deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Generation: 1},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: template("web:1"), RevisionHistoryLimit: &limit, ProgressDeadlineSeconds: &deadline,
				Strategy: appsv1.DeploymentStrategy{
					Type:          appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
				},
			},
		},
	}, rollout.copied)
	c := &cluster{world: w, deployments: newProcess(w, "deployment", workloads, replicaSets, members),
		replicas: newProcess(w, "replicaset", replicaSets, members), statuses: map[types.UID]time.Time{}}
	w.shown, c.replicas.forget = c, func() { clear(c.statuses) }
	return c
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

// String shows each ReplicaSet as size, what its status says is available of how many, and what really is.
func (c *cluster) String() string {
	var text []string
	for _, set := range c.last().allSets() {
		var active, available int
		for _, pod := range c.last().pods {
			if pod.OwnerReferences[0].UID == set.UID && podview.IsActive(pod) {
				active++
				if podview.IsReady(pod) {
					available++
				}
			}
		}
		text = append(text, fmt.Sprintf("%s %d (%d/%d, really %d/%d)", image(set), *set.Spec.Replicas,
			set.Status.AvailableReplicas, set.Status.Replicas, available, active))
	}
	return strings.Join(text, ", ")
}

// edit is what a user does.
func (c *cluster) edit(what string, change func(*appsv1.Deployment)) {
	c.note("user: %s", what)
	c.change(func(r *rollout) {
		before := r.deployment
		r.deployment = before.DeepCopy()
		if change(r.deployment); !reflect.DeepEqual(before.Spec, r.deployment.Spec) {
			r.deployment.Generation++
		}
	})
}

// stepPod moves one Pod on. It says whether anything changed.
func (c *cluster) stepPod(uid types.UID) bool {
	pod := c.last().pods[uid].DeepCopy()
	switch {
	case pod.DeletionTimestamp != nil:
		c.note("node: %s has ended", pod.Name)
		c.change(func(r *rollout) { delete(r.pods, uid) })
		return true
	case podview.IsReady(pod):
		if !c.chaos || c.random.IntN(20) > 0 {
			return false
		}
		if c.random.IntN(2) == 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		c.setReady(pod, corev1.ConditionFalse)
	case podview.IsTerminal(pod) || strings.Contains(pod.Spec.Containers[0].Image, "bad"):
		return false
	case c.refusing && pod.Status.Phase == corev1.PodPending:
		pod.Status.Phase = corev1.PodFailed
	default:
		pod.Status.Phase = corev1.PodRunning
		c.setReady(pod, corev1.ConditionTrue)
	}
	c.note("node: %s is %s, ready %t", pod.Name, pod.Status.Phase, podview.IsReady(pod))
	c.change(func(r *rollout) { r.pods[uid] = pod })
	return true
}

func (c *cluster) setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status,
		LastTransitionTime: metav1.NewTime(c.now)}}
}

// collect ends a Pod whose ReplicaSet is gone. It says whether there was one.
func (c *cluster) collect() bool {
	for _, uid := range sorted(c.last().pods) {
		pod := c.last().pods[uid]
		if pod.DeletionTimestamp == nil && c.last().sets[pod.OwnerReferences[0].UID] == nil {
			c.note("collector: %s", pod.Name)
			c.change(func(r *rollout) { r.end(uid, c.now) })
			return true
		}
	}
	return false
}

// end tells a Pod to end.
func (r rollout) end(uid types.UID, now time.Time) {
	pod := r.pods[uid].DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: now}
	r.pods[uid] = pod
}

// step lets one thing happen.
func (c *cluster) step() {
	c.now = c.now.Add(time.Duration(c.random.IntN(2000)) * time.Millisecond)
	switch pods := sorted(c.last().pods); {
	case c.late && c.random.IntN(3) == 0:
		[]*process[rollout]{c.deployments, c.replicas}[c.random.IntN(2)].look()
	case c.random.IntN(4) == 0:
		c.lookAtAll()
		c.passOfDeployment()
	case c.random.IntN(3) == 0:
		c.lookAtAll()
		if sets := sorted(c.replicas.at(replicaSets).sets); len(sets) > 0 {
			c.passOfSet(sets[c.random.IntN(len(sets))])
		}
	case c.random.IntN(20) == 0:
		c.collect()
	case len(pods) > 0:
		c.stepPod(pods[c.random.IntN(len(pods))])
	}
}

// lookAtAll lets the controllers see everything unless they are late.
func (c *cluster) lookAtAll() {
	if !c.late {
		c.deployments.lookAtAll()
		c.replicas.lookAtAll()
	}
}

// settle lets everything happen until nothing does any more, not even by the passing of some seconds.
func (c *cluster) settle() {
	rounds := 0
	for quiet := 0; quiet < 10; {
		changed := c.round()
		quiet++
		if changed || c.wake.After(c.now) {
			quiet = 0
		}
		if rounds++; rounds > 2000 {
			c.fail("it does not come to rest")
		}
	}
}

// round lets everything happen once, within a second. It says whether anything changed.
func (c *cluster) round() bool {
	c.now = c.now.Add(time.Second)
	c.deployments.lookAtAll()
	changed := c.passOfDeployment()
	c.replicas.lookAtAll()
	for _, uid := range sorted(c.replicas.at(replicaSets).sets) {
		changed = c.passOfSet(uid) || changed
	}
	for _, uid := range sorted(c.last().pods) {
		changed = c.stepPod(uid) || changed
	}
	return c.collect() || changed
}

func (r rollout) allSets() []*appsv1.ReplicaSet {
	var sets []*appsv1.ReplicaSet
	for _, uid := range sorted(r.sets) {
		sets = append(sets, r.sets[uid])
	}
	return sets
}

// wanted returns how many replicas all ReplicaSets together are told to have.
func (r rollout) wanted() int32 {
	var wanted int32
	for _, set := range r.sets {
		wanted += *set.Spec.Replicas
	}
	return wanted
}

// available returns how many Pods really serve.
func (r rollout) available() int32 {
	var available int32
	for _, pod := range r.pods {
		if podview.IsActive(pod) && podview.IsReady(pod) {
			available++
		}
	}
	return available
}

// active returns how many Pods exist that are not on their way out.
func (r rollout) active() int32 {
	var active int32
	for _, pod := range r.pods {
		if podview.IsActive(pod) {
			active++
		}
	}
	return active
}

func sorted[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

func image(set *appsv1.ReplicaSet) string { return set.Spec.Template.Spec.Containers[0].Image }
