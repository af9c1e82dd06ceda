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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/controllers/daemonset"
	"keelson.dev/services/workload-controllers/internal/podset"
)

// fleet is nodes with one DaemonSet for those of them that are labelled as fast and have no taint.
type fleet struct {
	t         *testing.T
	random    *rand.Rand
	now       time.Time
	set       *appsv1.DaemonSet
	placement *daemonset.Placement
	nodes     map[string]*corev1.Node
	pods      map[types.UID]*corev1.Pod
	revisions []*appsv1.ControllerRevision
	index     *podset.Index
	failures  map[string]daemonset.Failure
	serial    int
	wake      time.Time
	// chaos lets nodes and Pods fail.
	chaos bool
	log   []string
}

func newFleet(t *testing.T, seed uint64, strategy appsv1.DaemonSetUpdateStrategy) *fleet {
	limit := int32(2)
	f := &fleet{
		t: t, random: rand.New(rand.NewPCG(seed, 11)), now: time.Unix(1_700_000_000, 0),
		placement: daemonset.NewPlacement(), nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{},
		index: podset.NewIndex(), failures: map[string]daemonset.Failure{},
		set: &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent", Generation: 1},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: fast("web:1"), RevisionHistoryLimit: &limit, UpdateStrategy: strategy,
			},
		},
	}
	for range 8 {
		f.changeNode()
	}
	return f
}

// fast is a template for labelled nodes.
func fast(image string) corev1.PodTemplateSpec {
	template := template(image)
	template.Spec.NodeSelector = map[string]string{"fast": "yes"}
	return template
}

func (f *fleet) note(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *fleet) fail(format string, args ...any) {
	f.t.Helper()
	tail := f.log[max(0, len(f.log)-40):]
	f.t.Fatalf("%s\nstatus: %+v\nwhat happened last:\n%s", fmt.Sprintf(format, args...), f.set.Status,
		strings.Join(tail, "\n"))
}

func (f *fleet) edit(what string, change func(*appsv1.DaemonSet)) {
	next := f.set.DeepCopy()
	change(next)
	if !reflect.DeepEqual(next.Spec, f.set.Spec) {
		next.Generation++
	}
	f.set = next
	f.note("user: %s", what)
}

// changeNode lets a node come, go, or change its label or taint.
func (f *fleet) changeNode() {
	name := fmt.Sprint("node-", f.random.IntN(10))
	if f.nodes[name] != nil && f.random.IntN(5) == 0 {
		f.placement.Remove(f.nodes[name])
		delete(f.nodes, name)
		f.note("%s is gone", name)
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"fast": []string{"yes", "yes", "yes", "no"}[f.random.IntN(4)]}}}
	switch f.random.IntN(6) {
	case 0:
		node.Spec.Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	case 1:
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	f.nodes[name] = node
	f.placement.Put(node)
	f.note("%s is %v %v", name, node.Labels, node.Spec.Taints)
}

// wanted says whether a node is to run a Pod, worked out apart from the controller.
func (f *fleet) wanted(node string) bool {
	n := f.nodes[node]
	return n != nil && n.Labels["fast"] == "yes" && (len(n.Spec.Taints) == 0 || n.Spec.Taints[0].Key != "full")
}

func (f *fleet) input() daemonset.Input {
	present := f.index.Register(podset.Fold{Name: "present", Holds: func(pod *corev1.Pod) bool {
		return !podview.IsTerminal(pod) || !podview.IsTerminating(pod)
	}})
	counts := f.index.Observe(f.set.UID, podset.Spec{Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		MinReady: time.Duration(f.set.Spec.MinReadySeconds) * time.Second}, f.now)
	in := daemonset.Input{
		Now: f.now, DaemonSet: f.set, Revisions: f.revisions, Places: f.placement.Of(f.set),
		Pods: f.index.Pods(podset.Owner(f.set.UID), present), Failures: f.failures, NextAvailable: counts.NextAvailable,
		Missing: map[string]bool{},
	}
	for _, pod := range in.Pods {
		if node := target(pod); f.nodes[node] == nil {
			in.Missing[node] = true
		}
	}
	return in
}

// target is the node that a Pod is on or meant for.
func target(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
		MatchFields[0].Values[0]
}

// pass is one of the controller. It says whether anything changed.
func (f *fleet) pass() bool {
	in := f.input()
	plan := daemonset.Decide(in)
	changed := len(plan.Create)+len(plan.Delete)+len(plan.Surplus) > 0 || plan.History.Create != nil ||
		plan.History.Renumber != nil || !reflect.DeepEqual(plan.Status, f.set.Status)
	f.keepHistory(plan)
	before := f.serving()
	hash := plan.History.Current.Labels[controllerrevision.HashLabel]
	for _, d := range plan.Delete {
		pod := f.pods[d.Pod.UID].DeepCopy()
		pod.DeletionTimestamp = &metav1.Time{Time: f.now}
		f.put(pod)
		f.note("end %s on %s (%s)", pod.Name, target(pod), d.Reason)
		if d.Failed != "" {
			f.failures = maps.Clone(f.failures)
			f.failures[d.Failed] = f.failures[d.Failed].Again(f.set.Generation, f.now)
		}
	}
	for _, node := range plan.Create {
		f.create(daemonset.ForNode(daemonset.Prototype(f.set, hash), node))
	}
	f.expectBounds(before)
	next := f.set.DeepCopy()
	next.Status = plan.Status
	f.set, f.wake = next, plan.Wake
	return changed
}

func (f *fleet) keepHistory(plan daemonset.Plan) {
	kept := slices.Clone(f.revisions)
	if r := plan.History.Create; r != nil {
		f.serial++
		made := r.DeepCopy()
		made.UID, made.CreationTimestamp = types.UID(fmt.Sprint("revision-", f.serial)), metav1.NewTime(f.now)
		kept = append(kept, made)
	}
	if r := plan.History.Renumber; r != nil {
		kept[slices.IndexFunc(kept, func(o *appsv1.ControllerRevision) bool { return o.UID == r.UID })] = r
	}
	f.revisions = slices.DeleteFunc(kept, func(r *appsv1.ControllerRevision) bool {
		return slices.Contains(plan.Surplus, r)
	})
}

func (f *fleet) create(pod *corev1.Pod) {
	f.serial++
	made := pod.DeepCopy()
	made.Name = fmt.Sprint(pod.GenerateName, f.serial)
	made.UID, made.CreationTimestamp = types.UID(made.Name), metav1.NewTime(f.now)
	made.Status.Phase = corev1.PodPending
	f.put(made)
	f.note("make %s for %s", made.Name, target(made))
}

func (f *fleet) put(pod *corev1.Pod) {
	f.pods[pod.UID] = pod
	f.index.Upsert(pod)
}

// stepPod moves one Pod on, and says whether anything changed.
func (f *fleet) stepPod(uid types.UID) bool {
	pod := f.pods[uid].DeepCopy()
	node := f.nodes[target(pod)]
	switch {
	case node == nil && pod.Spec.NodeName != "", pod.DeletionTimestamp != nil:
		delete(f.pods, uid)
		f.index.Delete(pod)
		return true
	case pod.Spec.NodeName == "":
		if node == nil {
			return false
		}
		pod.Spec.NodeName = node.Name
	case podview.IsTerminal(pod):
		return false
	case f.chaos && f.random.IntN(15) == 0:
		pod.Status.Phase = []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}[f.random.IntN(2)]
		pod.Status.Conditions = nil
	case podview.IsReady(pod):
		if !f.chaos || f.random.IntN(8) > 0 {
			return false
		}
		pod.Status.Conditions = nil
	case strings.Contains(pod.Spec.Containers[0].Image, "bad"):
		return false
	default:
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(f.now)}}
	}
	f.put(pod)
	return true
}

// serving returns how many nodes that are to run a Pod have one that is available.
func (f *fleet) serving() int {
	nodes := map[string]bool{}
	for _, pod := range f.pods {
		if f.wanted(target(pod)) && podview.IsActive(pod) &&
			podview.IsAvailable(pod, time.Duration(f.set.Spec.MinReadySeconds)*time.Second, f.now) {
			nodes[target(pod)] = true
		}
	}
	return len(nodes)
}

func (f *fleet) desired() int {
	n := 0
	for name := range f.nodes {
		if f.wanted(name) {
			n++
		}
	}
	return n
}

// expectBounds holds a pass to the strategy's bounds, worked out apart from the controller.
func (f *fleet) expectBounds(before int) {
	f.t.Helper()
	rolling := f.set.Spec.UpdateStrategy.RollingUpdate
	surge, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, f.desired(), true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, f.desired(), true)
	if surge == 0 {
		unavailable = max(1, unavailable)
	}
	live := map[string]int{}
	for _, pod := range f.pods {
		if podview.IsActive(pod) {
			live[target(pod)]++
		}
	}
	for node, n := range live {
		if n > 1 && surge == 0 && intstr.ValueOrDefault(rolling.MaxSurge, intstr.FromInt32(0)).String() == "0" ||
			n > 2 {
			f.fail("%d Pods on %s", n, node)
		}
	}
	if now := f.serving(); now < before && now < f.desired()-unavailable {
		f.fail("%d nodes of %d were served, %d still are; %d may lack", before, f.desired(), now, unavailable)
	}
}

// settle lets everything happen until nothing does any more, not even by the passing of time.
func (f *fleet) settle() {
	for rounds, quiet := 0, 0; quiet < 3; rounds++ {
		f.now = f.now.Add(time.Second)
		changed := f.pass()
		for _, uid := range sorted(f.pods) {
			changed = f.stepPod(uid) || changed
		}
		if quiet++; changed || f.wake.After(f.now) {
			quiet = 0
		}
		if rounds > 3000 {
			f.fail("it does not come to rest")
		}
	}
}

// expectDone fails unless every node has what it should, and the status says so.
func (f *fleet) expectDone() {
	f.t.Helper()
	on := map[string]int{}
	for _, pod := range f.pods {
		on[target(pod)]++
		if image := pod.Spec.Containers[0].Image; image != f.set.Spec.Template.Spec.Containers[0].Image {
			f.fail("%s is of %s", pod.Name, image)
		}
	}
	misscheduled := 0
	for node, n := range on {
		switch {
		case n > 1:
			f.fail("%d Pods on %s", n, node)
		case !f.wanted(node) && f.nodes[node].Labels["fast"] != "yes":
			f.fail("a Pod on %s", node)
		case !f.wanted(node):
			misscheduled++
		}
	}
	want := int32(f.desired())
	s := f.set.Status
	if s.DesiredNumberScheduled != want || s.CurrentNumberScheduled != want || s.NumberReady != want ||
		s.NumberAvailable != want || s.UpdatedNumberScheduled != want || s.NumberUnavailable != 0 ||
		int(s.NumberMisscheduled) != misscheduled || s.ObservedGeneration != f.set.Generation {
		f.fail("%d nodes are to run a Pod, %d have one in excess", want, misscheduled)
	}
	if len(f.revisions) > 3 {
		f.fail("%d revisions are left of 2 and the current one", len(f.revisions))
	}
}

// anyStrategy is a rolling update with or without surge.
func anyStrategy(random *rand.Rand) appsv1.DaemonSetUpdateStrategy {
	bound, none := intstr.FromInt32(1+random.Int32N(3)), intstr.FromInt32(0)
	if random.IntN(2) == 0 {
		bound = intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(100)))
	}
	rolling := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &bound, MaxSurge: &none}
	if random.IntN(2) == 0 {
		rolling = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &none, MaxSurge: &bound}
	}
	return appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: rolling}
}

// SET-114 SET-152 SET-156 SET-160: through updates, ways back, nodes that come, go and change, and Pods that
// fail, no pass breaks the bounds of the update or makes a second Pod without surge; when all of that has ended, every
// node has what it should.
func TestADaemonSetAlwaysEndsWell(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			f := newFleet(t, seed, anyStrategy(random))
			f.chaos = seed%2 == 0
			for range 300 {
				switch random.IntN(30) {
				case 0:
					f.changeNode()
				case 1:
					image := []string{"web:1", "web:2", "web:3", "web:bad"}[random.IntN(4)]
					f.edit(image, func(set *appsv1.DaemonSet) { set.Spec.Template = fast(image) })
				case 2:
					seconds := random.Int32N(5)
					f.edit("another minReadySeconds",
						func(set *appsv1.DaemonSet) { set.Spec.MinReadySeconds = seconds })
				}
				f.now = f.now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
				if uids := sorted(f.pods); len(uids) > 0 && random.IntN(3) > 0 {
					f.stepPod(uids[random.IntN(len(uids))])
				} else {
					f.pass()
				}
			}
			f.chaos = false
			f.edit("the end", func(set *appsv1.DaemonSet) { set.Spec.Template = fast("web:4") })
			f.settle()
			f.expectDone()
			if f.pass() {
				f.fail("at rest a pass changes something")
			}
		})
	}
}
