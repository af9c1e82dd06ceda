package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllers/statefulset"
)

func newOrdinals(t *testing.T, seed uint64, policy appsv1.PodManagementPolicyType) *ordinals {
	random := rand.New(rand.NewPCG(seed, 13))
	replicas, limit, partition := 1+random.Int32N(6), int32(2), int32(0)
	most := intstr.FromInt32(1 + random.Int32N(3))
	retain := []appsv1.PersistentVolumeClaimRetentionPolicyType{"Retain", "Delete"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("web:1"), RevisionHistoryLimit: &limit, PodManagementPolicy: policy,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "www"}}},
			MinReadySeconds:      random.Int32N(4),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: &most}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: "Retain", WhenScaled: retain[random.IntN(2)]},
		},
	}
	w := newWorld(t, random, state{set: set, pods: map[string]*corev1.Pod{},
		revisions: map[string]*appsv1.ControllerRevision{}, claims: map[string]*corev1.PersistentVolumeClaim{}},
		state.copied)
	o := &ordinals{newProcess(w, "statefulset", workloads, members, revisions, claims), map[types.UID]bool{}}
	w.shown = o
	return o
}

// step lets one thing happen.
func (o *ordinals) step() {
	o.now = o.now.Add(time.Duration(o.random.IntN(1500)) * time.Millisecond)
	pods := slices.Sorted(maps.Keys(o.last().pods))
	switch draw := o.random.IntN(10); {
	case draw < 3:
		o.look()
	case draw < 6:
		o.pass()
	case draw < 7:
		o.collect()
	case len(pods) > 0:
		o.stepPod(pods[o.random.IntN(len(pods))])
	}
}

// settle lets everything happen until nothing does any more.
func (o *ordinals) settle() {
	for rounds, quiet := 0, 0; quiet < 10; rounds++ {
		if rounds > 1000 {
			o.fail("it does not come to rest")
		}
		o.now = o.now.Add(time.Second)
		o.lookAtAll()
		changed := o.pass()
		for _, name := range slices.Sorted(maps.Keys(o.last().pods)) {
			changed = o.stepPod(name) || changed
		}
		if quiet++; o.collect() || changed {
			quiet = 0
		}
	}
}

// name is the Pod's of an ordinal.
func name(ordinal int) string { return fmt.Sprint("web-", ordinal) }

// expectDone fails unless the set is as it was asked to be, and says so.
func (o *ordinals) expectDone(image string) {
	o.t.Helper()
	s := o.last()
	replicas := int(*s.set.Spec.Replicas)
	if len(s.pods) != replicas {
		o.fail("%d Pods", len(s.pods))
	}
	for ordinal := range replicas {
		pod := s.pods[name(ordinal)]
		if pod == nil || !podview.IsReady(pod) || pod.Spec.Containers[0].Image != image {
			o.fail("%s is not as it should be", name(ordinal))
		}
		if owner := metav1.GetControllerOf(s.claims["www-"+name(ordinal)]); owner != nil {
			o.fail("the claim of %s is that of %v", name(ordinal), owner)
		}
	}
	n := int32(replicas)
	if got := s.set.Status; got.Replicas != n || got.ReadyReplicas != n || got.AvailableReplicas != n ||
		got.UpdatedReplicas != n || got.CurrentReplicas != n || got.CurrentRevision != got.UpdateRevision ||
		got.ObservedGeneration != s.set.Generation {
		o.fail("status %+v", got)
	}
	if len(s.revisions) > 3 {
		o.fail("%d revisions are left, at most 2 beside the present one are asked for", len(s.revisions))
	}
}

// meddle does something that a user may do at any time.
func (o *ordinals) meddle(images ...string) {
	switch o.random.IntN(5) {
	case 0:
		n := o.random.Int32N(6)
		o.edit(fmt.Sprint("scale to ", n), func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n })
	case 1:
		partition := o.random.Int32N(4)
		o.edit(fmt.Sprint("partition ", partition), func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition,
				MaxUnavailable: s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable}
		})
	default:
		image := images[o.random.IntN(len(images))]
		o.edit(image, func(s *appsv1.StatefulSet) { s.Spec.Template = template(image) })
	}
}

// finish asks for one good template everywhere.
func (o *ordinals) finish(image string) {
	o.faulty, o.chaos = false, false
	o.edit("the end", func(s *appsv1.StatefulSet) {
		partition := int32(0)
		s.Spec.Template = template(image)
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition,
			MaxUnavailable: s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable}
	})
	o.settle()
	o.expectDone(image)
	if o.pass() {
		o.fail("at rest a pass changes something")
	}
}

// serving returns how many of the ordinals have a Pod that is available.
func (o *ordinals) serving() (available int) {
	s := o.last()
	for ordinal := range int(*s.set.Spec.Replicas) {
		if pod := s.pods[name(ordinal)]; pod != nil && podview.IsActive(pod) && podview.IsAvailable(pod,
			time.Duration(s.set.Spec.MinReadySeconds)*time.Second, o.now) {
			available++
		}
	}
	return available
}

// expectOrder: what was done to a Pod in order was its turn.
func (o *ordinals) expectOrder(before state) {
	replicas := int(*before.set.Spec.Replicas)
	isReady := func(ordinal int) bool {
		pod := before.pods[name(ordinal)]
		return pod != nil && podview.IsActive(pod) && podview.IsReady(pod)
	}
	for ordinal := range 8 {
		was, is := before.pods[name(ordinal)], o.last().pods[name(ordinal)]
		made, ended := was == nil && is != nil, was != nil && is != nil && !podview.IsTerminating(was) &&
			podview.IsTerminating(is) && ordinal >= replicas
		for lower := range ordinal {
			if (made || ended && before.pods[name(lower)] != nil) && !isReady(lower) {
				o.fail("%s has had its turn before %s was ready", name(ordinal), name(lower))
			}
		}
		for higher := ordinal + 1; higher < 8 && ended; higher++ {
			if before.pods[name(higher)] != nil {
				o.fail("%s ends before %s has gone", name(ordinal), name(higher))
			}
		}
	}
}

// SET-003, SET-057, SET-058, SET-059, SET-060, SET-069, SET-075, SET-085: whatever the order of events, however late
// the controller sees them, whichever of its writes fail and whenever it ends: Pods have their turns in order, and an
// update never takes more of them than maxUnavailable. In the end all is as asked for.
func TestTurnsAndBoundsAreKept(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			policy := []appsv1.PodManagementPolicyType{"OrderedReady", "Parallel"}[seed%2]
			o := newOrdinals(t, seed, policy)
			o.faulty = true
			o.begin()
			for range 600 {
				if o.random.IntN(60) == 0 {
					o.meddle("web:1", "web:2", "web:3")
				}
				before, serving, generation := o.last(), o.serving(), o.last().set.Generation
				steps := len(o.history)
				o.pass()
				if len(o.history) > steps && policy == appsv1.OrderedReadyPodManagement {
					o.expectOrder(before)
				}
				least := int(*before.set.Spec.Replicas) - before.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.
					IntValue()
				if now := o.serving(); generation == o.last().set.Generation && now < serving && now < least {
					o.fail("%d Pods were available, %d still are; at least %d have to be", serving, now, least)
				}
				o.step()
			}
			o.finish("web:9")
		})
	}
}

// SET-002, SET-065, SET-066: whatever fails, and however old the picture is that a controller begins with, in the end
// all is as asked for. Where the annotation asks for it, Pods of a broken template are replaced, and only those that
// never were ready.
func TestAStatefulSetAlwaysEndsWell(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := newOrdinals(t, seed, []appsv1.PodManagementPolicyType{"OrderedReady", "Parallel"}[seed%2])
			o.edit("recover", func(s *appsv1.StatefulSet) {
				s.Annotations = map[string]string{statefulset.RecoverAnnotation: "true"}
			})
			o.faulty, o.stale, o.chaos = true, true, true
			o.begin()
			for range 600 {
				if o.random.IntN(30) == 0 {
					o.meddle("web:1", "web:2", "web:bad")
				}
				o.step()
			}
			o.finish("web:9")
		})
	}
}
