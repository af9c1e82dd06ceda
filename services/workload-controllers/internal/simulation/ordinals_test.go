package simulation

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllers/statefulset"
)

// state is all that there is of a StatefulSet at one time.
type state struct {
	set       *appsv1.StatefulSet
	pods      map[string]*corev1.Pod
	revisions map[string]*appsv1.ControllerRevision
	claims    map[string]*corev1.PersistentVolumeClaim
}

func (s state) copied() state {
	s.pods, s.revisions, s.claims = maps.Clone(s.pods), maps.Clone(s.revisions), maps.Clone(s.claims)
	return s
}

// ordinals is one StatefulSet with all that belongs to it, and its controller.
type ordinals struct {
	*process[state]
	ready map[types.UID]bool // whether a Pod ever was
}

// String shows each Pod with its image and how it is.
func (o *ordinals) String() string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(o.last().pods)) {
		pod := o.last().pods[name]
		text = append(text, fmt.Sprintf("%s of %s %s ready %t ending %t", name, pod.Spec.Containers[0].Image,
			pod.Status.Phase, podview.IsReady(pod), podview.IsTerminating(pod)))
	}
	return fmt.Sprintf("%d wanted; %s", *o.last().set.Spec.Replicas, strings.Join(text, ", "))
}

// edit is what a user does.
func (o *ordinals) edit(what string, change func(*appsv1.StatefulSet)) {
	o.note("user: %s", what)
	o.change(func(s *state) {
		before := s.set
		s.set = s.set.DeepCopy()
		if change(s.set); !reflect.DeepEqual(before.Spec, s.set.Spec) {
			s.set.Generation++
		}
	})
}

// write is what the controller does.
func (o *ordinals) write(k kind, what string, edit func(*state)) error {
	return o.process.write(o.last().set.UID, k, what, edit)
}

// input is what the controller sees.
func (o *ordinals) input() statefulset.Input {
	in := statefulset.Input{Now: o.now, Set: o.at(workloads).set, Claims: o.at(claims).claims}
	for _, name := range slices.Sorted(maps.Keys(o.at(members).pods)) {
		in.Pods = append(in.Pods, o.at(members).pods[name])
	}
	for _, name := range slices.Sorted(maps.Keys(o.at(revisions).revisions)) {
		in.Revisions = append(in.Revisions, o.at(revisions).revisions[name])
	}
	return in
}

// pass is one pass of the controller. It says whether anything was written.
func (o *ordinals) pass() bool {
	if !o.isOpen(o.last().set.UID) {
		return false
	}
	in := o.input()
	plan := decided(o.fail, statefulset.Decide, in)
	before := len(o.history)
	if errors.Is(o.apply(in, plan), errEnded) {
		o.begin()
	}
	return len(o.history) > before
}

// apply carries a plan out as the controller does: in its order, up to the first failure.
func (o *ordinals) apply(in statefulset.Input, plan statefulset.Plan) error {
	if err := o.keepHistory(plan); err != nil {
		return err
	}
	for _, next := range plan.Owners {
		if o.last().claims[next.Name] == nil || in.Claims[next.Name] != o.last().claims[next.Name] {
			return errRefused // another version by now
		}
		if err := o.write(claims, "owners of "+next.Name, func(s *state) { s.claims[next.Name] = next }); err != nil {
			return err
		}
	}
	for _, made := range plan.Storage {
		if err := o.makeClaim(made); err != nil {
			return err
		}
	}
	for _, creation := range plan.Create {
		if err := o.create(creation); err != nil {
			return err
		}
	}
	for _, d := range plan.Delete {
		if err := o.delete(in, d); err != nil {
			return err
		}
	}
	if err := o.writeStatus(in, plan); err != nil {
		return err
	}
	for _, r := range plan.Forget {
		if err := o.write(revisions, "forget "+r.Name, func(s *state) { delete(s.revisions, r.Name) }); err != nil {
			return err
		}
	}
	return plan.Problem
}

func (o *ordinals) keepHistory(plan statefulset.Plan) error {
	made := plan.History.Create
	if made == nil {
		made = plan.History.Renumber
	} else if o.last().revisions[made.Name] != nil {
		return errRefused
	}
	if made == nil {
		return nil
	}
	return o.write(revisions, "remember "+made.Name, func(s *state) { s.revisions[made.Name] = made })
}

func (o *ordinals) makeClaim(made statefulset.NewClaim) error {
	if o.last().claims[made.Claim.Name] != nil {
		return errRefused
	}
	return o.write(claims, "claim "+made.Claim.Name, func(s *state) { s.claims[made.Claim.Name] = made.Claim })
}

func (o *ordinals) create(creation statefulset.Creation) error {
	for _, made := range creation.Claims {
		if err := o.makeClaim(made); err != nil {
			return err
		}
	}
	if o.last().pods[creation.Pod.Name] != nil {
		return errRefused // the name is taken
	}
	if o.last().claims["www-"+creation.Pod.Name] == nil && !o.stale {
		o.fail("%s is made without its claim", creation.Pod.Name)
	}
	pod := creation.Pod.DeepCopy()
	pod.UID, pod.CreationTimestamp = types.UID(strconv.Itoa(o.next())), metav1.NewTime(o.now)
	pod.Status.Phase = corev1.PodPending
	return o.write(members, "create "+pod.Name+" of "+pod.Spec.Containers[0].Image,
		func(s *state) { s.pods[pod.Name] = pod })
}

func (o *ordinals) delete(in statefulset.Input, d statefulset.Deletion) error {
	there := o.last().pods[d.Pod.Name]
	if o.last().set.Generation != in.Set.Generation || d.Reason == statefulset.ReasonNeverReady && there != d.Pod {
		return errRefused
	}
	if there == nil || there.UID != d.Pod.UID || podview.IsTerminating(there) {
		return nil
	}
	if d.Reason == statefulset.ReasonNeverReady && o.ready[d.Pod.UID] {
		o.fail("%s has been ready", d.Pod.Name)
	}
	ending := there.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: o.now}
	return o.write(members, fmt.Sprintf("delete %s %s", d.Pod.Name, d.Reason),
		func(s *state) { s.pods[d.Pod.Name] = ending })
}

func (o *ordinals) writeStatus(in statefulset.Input, plan statefulset.Plan) error {
	if reflect.DeepEqual(in.Set.Status, plan.Status) {
		return nil
	}
	if o.last().set != in.Set {
		return errRefused
	}
	return o.write(workloads, "status", func(s *state) {
		s.set = s.set.DeepCopy()
		s.set.Status = plan.Status
	})
}

// stepPod moves one Pod on. It says whether anything changed.
func (o *ordinals) stepPod(name string) bool {
	pod := o.last().pods[name].DeepCopy()
	broken := strings.Contains(pod.Spec.Containers[0].Image, "bad")
	switch {
	case pod.DeletionTimestamp != nil:
		o.note("node: %s has ended", name)
		o.change(func(s *state) { delete(s.pods, name) })
		return true
	case podview.IsTerminal(pod) || broken && pod.Status.Phase == corev1.PodRunning && !podview.IsReady(pod):
		return false
	case podview.IsReady(pod):
		if !o.chaos || o.random.IntN(10) > 0 {
			return false
		}
		o.setReady(pod, corev1.ConditionFalse)
		if o.random.IntN(2) == 0 {
			pod.Status.Phase = corev1.PodFailed
		}
	case broken:
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: o.now}
		o.setReady(pod, corev1.ConditionFalse)
	default:
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: o.now}
		o.setReady(pod, corev1.ConditionTrue)
		o.ready[pod.UID] = true
	}
	o.note("node: %s is %s, ready %t", name, pod.Status.Phase, podview.IsReady(pod))
	o.change(func(s *state) { s.pods[name] = pod })
	return true
}

func (o *ordinals) setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(o.now)},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: *pod.Status.StartTime},
	}
}

// collect takes away what its owner has left behind. It says whether anything was.
func (o *ordinals) collect() bool {
	for name, existing := range o.last().claims {
		owner := metav1.GetControllerOf(existing)
		if owner == nil || owner.Kind != "Pod" {
			continue
		}
		if pod := o.last().pods[owner.Name]; pod == nil || pod.UID != owner.UID {
			o.note("collector: %s", name)
			o.change(func(s *state) { delete(s.claims, name) })
			return true
		}
	}
	return false
}
