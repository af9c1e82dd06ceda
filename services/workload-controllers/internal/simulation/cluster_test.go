package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllers/deployment"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/replicas"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// cluster holds one Deployment with all that belongs to it. Objects are replaced, never changed, as in a cache.
//
// Each controller sees its own writes at once, as the gate grants. What the other one wrote it sees when that one's
// turn has come: a ReplicaSet's status is as old as its last turn.
type cluster struct {
	t          *testing.T
	random     *rand.Rand
	now        time.Time
	deployment *appsv1.Deployment
	sets       map[types.UID]*appsv1.ReplicaSet
	pods       map[types.UID]*corev1.Pod
	index      *podset.Index
	written    map[types.UID]time.Time
	serial     int
	// wake is until when a ReplicaSet waits for nothing but time.
	wake time.Time
	// refusing nodes take no Pod.
	refusing bool
	// chaos lets Pods that serve fail, too.
	chaos bool
	log   []string
}

func newCluster(t *testing.T, seed uint64, replicas int32, surge, unavailable intstr.IntOrString) *cluster {
	limit, deadline := int32(2), int32(600)
	return &cluster{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1_700_000_000, 0),
		sets: map[types.UID]*appsv1.ReplicaSet{}, pods: map[types.UID]*corev1.Pod{}, index: podset.NewIndex(),
		written: map[types.UID]time.Time{},
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
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

func (c *cluster) fail(format string, args ...any) {
	c.t.Helper()
	tail := c.log[max(0, len(c.log)-40):]
	c.t.Fatalf("%s\nnow: %s\nwhat happened last:\n%s", fmt.Sprintf(format, args...), c, strings.Join(tail, "\n"))
}

// String shows each ReplicaSet as size, what its status says is available of how many, and what really is.
func (c *cluster) String() string {
	var text []string
	for _, set := range c.allSets() {
		var active, available int
		for _, pod := range c.pods {
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
	d := c.deployment.DeepCopy()
	change(d)
	if !reflect.DeepEqual(d.Spec, c.deployment.Spec) {
		d.Generation++
	}
	c.deployment = d
	c.note("user: %s", what)
}

// stepDeployment is one pass of the Deployment controller. It says whether anything changed.
func (c *cluster) stepDeployment() bool {
	in := deployment.Input{Now: c.now, Deployment: c.deployment, ReplicaSets: c.allSets(),
		Unfinished: map[types.UID]int{}}
	for _, set := range in.ReplicaSets {
		in.Unfinished[set.UID] = c.index.Unfinished(set.UID)
	}
	before := in.Deployment.DeepCopy()
	plan := deployment.Decide(in)
	if again := deployment.Decide(in); !reflect.DeepEqual(plan, again) {
		c.fail("two decisions over one input differ")
	}
	if !reflect.DeepEqual(before, in.Deployment) {
		c.fail("the decision changed its input")
	}
	if plan.Create != nil {
		c.createSet(plan.Create.ReplicaSet)
	}
	for _, update := range plan.Updates {
		to := update.To.DeepCopy()
		to.Generation++
		c.note("deployment: %s %d -> %d (%s); before: %s", image(to), *update.From.Spec.Replicas, *to.Spec.Replicas,
			update.Reason, c)
		c.sets[to.UID] = to
	}
	for _, deletion := range plan.Deletes {
		c.note("deployment: delete %s", image(deletion.ReplicaSet))
		delete(c.sets, deletion.ReplicaSet.UID)
	}
	next := c.deployment.DeepCopy()
	next.Status = plan.Status
	if plan.Revision != "" {
		next.Annotations = maps.Clone(next.Annotations)
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[revision.Annotation] = plan.Revision
	}
	changed := plan.Create != nil || len(plan.Updates)+len(plan.Deletes) > 0 || !reflect.DeepEqual(next, c.deployment)
	c.deployment = next
	return changed
}

func (c *cluster) createSet(planned *appsv1.ReplicaSet) {
	for _, set := range c.sets {
		if set.Name == planned.Name {
			c.fail("ReplicaSet %s is created twice", planned.Name)
		}
	}
	set := planned.DeepCopy()
	c.serial++
	set.UID, set.Generation, set.CreationTimestamp = types.UID("rs-"+strconv.Itoa(c.serial)), 1, metav1.NewTime(c.now)
	c.sets[set.UID] = set
	c.note("deployment: create %s with %d", image(set), *set.Spec.Replicas)
}

// stepSet is one pass of the ReplicaSet controller. It says whether anything changed.
func (c *cluster) stepSet(uid types.UID) bool {
	set := c.sets[uid]
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		c.fail("selector: %v", err)
	}
	in := replicas.Input{Now: c.now, ReplicaSet: set, Written: c.written[uid]}
	in.Counts = c.index.Observe(uid, podset.Spec{Selector: selector, Template: set.Spec.Template.Labels,
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second}, c.now)
	in.Candidates, in.Made = c.index.Ranked(uid, slices.Collect(maps.Keys(c.sets))), c.index.Made(uid)
	plan := replicas.Decide(in)
	if plan.Wake.After(c.wake) {
		c.wake = plan.Wake
	}
	for range plan.Create {
		c.createPod(set)
	}
	for _, victim := range plan.Delete {
		pod := c.pods[victim.UID].DeepCopy()
		pod.DeletionTimestamp = &metav1.Time{Time: c.now}
		c.put(pod)
		c.note("replicaset: end %s of %s (ready %t)", pod.Name, image(set), victim.Ready)
	}
	if plan.WriteStatus {
		next := set.DeepCopy()
		next.Status = plan.Status
		c.sets[uid], c.written[uid] = next, c.now
	}
	return plan.Create+len(plan.Delete) > 0 || plan.WriteStatus
}

func (c *cluster) createPod(set *appsv1.ReplicaSet) {
	c.serial++
	yes := true
	name := fmt.Sprintf("%s-%d", set.Name, c.serial)
	c.put(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Labels: set.Spec.Template.Labels,
			CreationTimestamp: metav1.NewTime(c.now),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID,
				Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", c.random.IntN(3)),
			Containers: set.Spec.Template.Spec.Containers},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
}

// stepPod moves one Pod on. It says whether anything changed.
func (c *cluster) stepPod(uid types.UID) bool {
	pod := c.pods[uid].DeepCopy()
	switch {
	case pod.DeletionTimestamp != nil:
		delete(c.pods, uid)
		c.index.Delete(pod)
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
	c.put(pod)
	return true
}

func (c *cluster) setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status,
		LastTransitionTime: metav1.NewTime(c.now)}}
}

func (c *cluster) put(pod *corev1.Pod) {
	c.pods[pod.UID] = pod
	c.index.Upsert(pod)
}

// step lets one thing happen.
func (c *cluster) step() {
	c.now = c.now.Add(time.Duration(c.random.IntN(2000)) * time.Millisecond)
	switch sets, pods := sorted(c.sets), sorted(c.pods); {
	case c.random.IntN(4) == 0:
		c.stepDeployment()
	case c.random.IntN(3) == 0 && len(sets) > 0:
		c.stepSet(sets[c.random.IntN(len(sets))])
	case len(pods) > 0:
		c.stepPod(pods[c.random.IntN(len(pods))])
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
	changed := c.stepDeployment()
	for _, uid := range sorted(c.sets) {
		changed = c.stepSet(uid) || changed
	}
	for _, uid := range sorted(c.pods) {
		changed = c.stepPod(uid) || changed
	}
	return changed
}

func (c *cluster) allSets() []*appsv1.ReplicaSet {
	var sets []*appsv1.ReplicaSet
	for _, uid := range sorted(c.sets) {
		sets = append(sets, c.sets[uid])
	}
	return sets
}

// wanted returns how many replicas all ReplicaSets together are told to have.
func (c *cluster) wanted() int32 {
	var wanted int32
	for _, set := range c.sets {
		wanted += *set.Spec.Replicas
	}
	return wanted
}

// available returns how many Pods really serve.
func (c *cluster) available() int32 {
	var available int32
	for _, pod := range c.pods {
		if podview.IsActive(pod) && podview.IsReady(pod) {
			available++
		}
	}
	return available
}

// active returns how many Pods exist that are not on their way out.
func (c *cluster) active() int32 {
	var active int32
	for _, pod := range c.pods {
		if podview.IsActive(pod) {
			active++
		}
	}
	return active
}

func sorted[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

func image(set *appsv1.ReplicaSet) string { return set.Spec.Template.Spec.Containers[0].Image }
