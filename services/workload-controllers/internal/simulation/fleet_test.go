package simulation

import (
	"errors"
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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/controllers/daemonset"
	"keelson.dev/services/workload-controllers/internal/podset"
)

// daemons is all that there is of a DaemonSet and its nodes at one time.
type daemons struct {
	set       *appsv1.DaemonSet
	nodes     map[string]*corev1.Node
	pods      map[types.UID]*corev1.Pod
	revisions map[string]*appsv1.ControllerRevision
}

func (d daemons) copied() daemons {
	d.nodes, d.pods, d.revisions = maps.Clone(d.nodes), maps.Clone(d.pods), maps.Clone(d.revisions)
	return d
}

// fleet is nodes with one DaemonSet for those of them that are labelled as fast and have no taint, and its
// controller.
type fleet struct {
	*process[daemons]
	// failures and statusAt are what the controller alone knows.
	failures map[string]daemonset.Failure
	statusAt time.Time // when it wrote the status
	wake     time.Time
}

func newFleet(t *testing.T, seed uint64, strategy appsv1.DaemonSetUpdateStrategy) *fleet {
	limit := int32(2)
	w := newWorld(t, rand.New(rand.NewPCG(seed, 11)), daemons{
		nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{},
		revisions: map[string]*appsv1.ControllerRevision{},
		set: &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent", Generation: 1},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: fast("web:1"), RevisionHistoryLimit: &limit, UpdateStrategy: strategy,
			},
		},
	}, daemons.copied)
	f := &fleet{process: newProcess(w, "daemonset", workloads, members, revisions, nodes)}
	f.forget = func() { f.failures, f.statusAt = nil, time.Time{} }
	w.shown = f
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

// String shows the status and each Pod.
func (f *fleet) String() string {
	text := []string{fmt.Sprintf("%+v", f.last().set.Status)}
	for _, uid := range sorted(f.last().pods) {
		pod := f.last().pods[uid]
		text = append(text, fmt.Sprintf("%s for %s of %s %s ready %t ending %t", uid, target(pod),
			pod.Spec.Containers[0].Image, pod.Status.Phase, podview.IsReady(pod), podview.IsTerminating(pod)))
	}
	return strings.Join(text, "\n")
}

// edit is what a user does.
func (f *fleet) edit(what string, change func(*appsv1.DaemonSet)) {
	f.note("user: %s", what)
	f.change(func(d *daemons) {
		before := d.set
		d.set = before.DeepCopy()
		if change(d.set); !reflect.DeepEqual(before.Spec, d.set.Spec) {
			d.set.Generation++
		}
	})
}

// changeNode lets a node come, change its label or taint or, in chaos, go.
func (f *fleet) changeNode() {
	name := fmt.Sprint("node-", f.random.IntN(10))
	if f.chaos && f.last().nodes[name] != nil && f.random.IntN(5) == 0 {
		f.note("%s is gone", name)
		f.change(func(d *daemons) { delete(d.nodes, name) })
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
	f.note("%s is %v %v", name, node.Labels, node.Spec.Taints)
	f.change(func(d *daemons) { d.nodes[name] = node })
}

// wanted reports whether a node is to run a Pod, worked out apart from the controller.
func (d daemons) wanted(node string) bool {
	n := d.nodes[node]
	return n != nil && n.Labels["fast"] == "yes" && (len(n.Spec.Taints) == 0 || n.Spec.Taints[0].Key != "full")
}

// desired is how many nodes are to run a Pod.
func (d daemons) desired() int {
	n := 0
	for name := range d.nodes {
		if d.wanted(name) {
			n++
		}
	}
	return n
}

// input is what the controller sees.
func (f *fleet) input() daemonset.Input {
	set, placement, index := f.at(workloads).set, daemonset.NewPlacement(), indexed(f.at(members).pods)
	for _, node := range f.at(nodes).nodes {
		placement.Put(node)
	}
	present := index.Register(podset.Fold{Name: "present", Holds: func(pod *corev1.Pod) bool {
		return !podview.IsTerminal(pod) || !podview.IsTerminating(pod)
	}})
	counts := index.Observe(set.UID, podset.Spec{Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second}, f.now)
	in := daemonset.Input{
		Now: f.now, DaemonSet: set, Places: placement.Of(set), Pods: index.Pods(podset.Owner(set.UID), present),
		Failures: f.failures, Written: f.statusAt, NextAvailable: counts.NextAvailable, Missing: map[string]bool{},
	}
	for _, name := range slices.Sorted(maps.Keys(f.at(revisions).revisions)) {
		in.Revisions = append(in.Revisions, f.at(revisions).revisions[name])
	}
	slices.SortFunc(in.Pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range in.Pods {
		if node := target(pod); f.at(nodes).nodes[node] == nil {
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

// pass is one pass of the controller. It says whether anything was written.
func (f *fleet) pass() bool {
	if !f.isOpen(f.last().set.UID) {
		return false
	}
	in := f.input()
	plan := decided(f.fail, daemonset.Decide, in)
	f.wake = plan.Wake
	before := len(f.history)
	if errors.Is(f.apply(in, plan), errEnded) {
		f.begin()
	}
	return len(f.history) > before
}

// apply carries a plan out as the controller does. What the pass came to is in the status even where it failed.
func (f *fleet) apply(in daemonset.Input, plan daemonset.Plan) error {
	if err := f.keepHistory(in, plan.History); err != nil {
		return err
	}
	hash := plan.History.Current.Labels[controllerrevision.HashLabel]
	err := f.inBatches(len(plan.Create), func(i int) error {
		return f.create(in, daemonset.ForNode(daemonset.Prototype(in.DaemonSet, hash), plan.Create[i]))
	})
	if errors.Is(err, errEnded) {
		return err
	}
	for _, d := range plan.Delete {
		failed := f.delete(in, d)
		if errors.Is(failed, errEnded) {
			return failed
		}
		err = errors.Join(err, failed)
	}
	for _, r := range plan.Surplus {
		if err == nil {
			err = f.forgetRevision(in, r)
		}
	}
	if errors.Is(err, errEnded) || !plan.WriteStatus {
		return err
	}
	return errors.Join(err, f.writeStatus(in, plan.Status))
}

// write is what the controller does.
func (f *fleet) write(in daemonset.Input, k kind, what string, edit func(*daemons)) error {
	return f.process.write(in.DaemonSet.UID, k, what, edit)
}

func (f *fleet) keepHistory(in daemonset.Input, plan controllerrevision.Plan) error {
	switch {
	case plan.Create != nil:
		made := plan.Create.DeepCopy()
		if f.last().revisions[made.Name] != nil {
			f.await(in.DaemonSet.UID, revisions)
			return errRefused // the cache was behind
		}
		made.UID, made.CreationTimestamp = types.UID(fmt.Sprint("revision-", f.next())), metav1.NewTime(f.now)
		return f.write(in, revisions, "remember "+made.Name, func(d *daemons) { d.revisions[made.Name] = made })
	case plan.Renumber != nil:
		next := plan.Renumber
		if there := f.last().revisions[next.Name]; there == nil || !slices.Contains(in.Revisions, there) {
			return errRefused // another version by now
		}
		return f.write(in, revisions, "renumber "+next.Name, func(d *daemons) { d.revisions[next.Name] = next })
	}
	return nil
}

func (f *fleet) forgetRevision(in daemonset.Input, r *appsv1.ControllerRevision) error {
	switch f.last().revisions[r.Name] {
	case nil:
		return nil
	case r:
		return f.write(in, revisions, "forget "+r.Name, func(d *daemons) { delete(d.revisions, r.Name) })
	default:
		return errRefused // another version by now
	}
}

func (f *fleet) create(in daemonset.Input, pod *corev1.Pod) error {
	made := pod.DeepCopy()
	made.Name = fmt.Sprint(pod.GenerateName, f.next())
	made.UID, made.CreationTimestamp = types.UID(made.Name), metav1.NewTime(f.now)
	made.Status.Phase = corev1.PodPending
	return f.write(in, members, fmt.Sprintf("make %s for %s", made.Name, target(made)),
		func(d *daemons) { d.pods[made.UID] = made })
}

func (f *fleet) delete(in daemonset.Input, d daemonset.Deletion) error {
	if d.Failed != "" {
		f.failures = maps.Clone(f.failures)
		if f.failures == nil {
			f.failures = map[string]daemonset.Failure{}
		}
		f.failures[d.Failed] = f.failures[d.Failed].Again(in.DaemonSet.Generation, f.now)
	}
	there := f.last().pods[d.Pod.UID]
	if there == nil || podview.IsTerminating(there) {
		f.await(in.DaemonSet.UID, members)
		return nil
	}
	ending := there.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: f.now}
	return f.write(in, members, fmt.Sprintf("end %s on %s (%s)", there.Name, target(there), d.Reason),
		func(s *daemons) { s.pods[ending.UID] = ending })
}

func (f *fleet) writeStatus(in daemonset.Input, status appsv1.DaemonSetStatus) error {
	if apiequality.Semantic.DeepEqual(in.DaemonSet.Status, status) {
		return nil
	}
	if f.last().set != in.DaemonSet {
		return errRefused
	}
	err := f.write(in, workloads, "status", func(d *daemons) {
		d.set = d.set.DeepCopy()
		d.set.Status = status
	})
	if err == nil {
		f.statusAt = f.now
	}
	return err
}

// stepPod moves one Pod on, and says whether anything changed.
func (f *fleet) stepPod(uid types.UID) bool {
	pod := f.last().pods[uid].DeepCopy()
	node := f.last().nodes[target(pod)]
	switch {
	case node == nil && pod.Spec.NodeName != "", pod.DeletionTimestamp != nil:
		f.note("node: %s is gone", uid)
		f.change(func(d *daemons) { delete(d.pods, uid) })
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
	f.note("node: %s is %s on %q, ready %t", uid, pod.Status.Phase, pod.Spec.NodeName, podview.IsReady(pod))
	f.change(func(d *daemons) { d.pods[uid] = pod })
	return true
}

// settle lets everything happen until nothing does any more, not even by the passing of time.
func (f *fleet) settle() {
	for rounds, quiet := 0, 0; quiet < 3; rounds++ {
		f.now = f.now.Add(time.Second)
		f.lookAtAll()
		changed := f.pass()
		for _, uid := range sorted(f.last().pods) {
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
