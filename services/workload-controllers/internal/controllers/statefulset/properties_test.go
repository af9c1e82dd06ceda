package statefulset

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/podfeed"
)

// anyInput is any state that a set may be found in.
func anyInput(r *rand.Rand) Input {
	edits := []edit{replicas(r.Int32N(6)), start(r.Int32N(3)), updated(1 + r.IntN(3)), partition(r.Int32N(5)),
		unavailable(intstr.FromInt32(1 + r.Int32N(3))), limit(r.Int32N(3))}
	policies := []appsv1.PersistentVolumeClaimRetentionPolicyType{"Retain", "Delete"}
	for _, optional := range []edit{parallel, recovering, claimed, minReady(3700),
		retain(policies[r.IntN(2)], policies[r.IntN(2)])} {
		if r.IntN(2) == 0 {
			edits = append(edits, optional)
		}
	}
	if r.IntN(5) == 0 {
		edits = append(edits, onDelete)
	}
	var pods, claims []string
	for ordinal := range 8 {
		if r.IntN(3) > 0 {
			pods = append(pods, fmt.Sprintf("%d%c%d", ordinal, "rrrrunptfsd"[r.IntN(11)], 1+r.IntN(3)))
		}
		if r.IntN(3) > 0 {
			by := []string{"", "@set", fmt.Sprintf("@web-%d", ordinal)}[r.IntN(3)]
			claims = append(claims, fmt.Sprintf("www-web-%d%s", ordinal, by))
		}
	}
	return input(newSet(edits...), strings.Join(pods, " "), strings.Join(claims, " "))
}

// copyOf shares nothing with the input.
func copyOf(in Input) Input {
	out := Input{Now: in.Now, Set: in.Set.DeepCopy(), Claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, r := range in.Revisions {
		out.Revisions = append(out.Revisions, r.DeepCopy())
	}
	for _, pod := range in.Pods {
		out.Pods = append(out.Pods, pod.DeepCopy())
	}
	for name, existing := range in.Claims {
		out.Claims[name] = existing.DeepCopy()
	}
	return out
}

// Whatever is found: an input is left as it was, two decisions over it are the same, and what the cache keeps of Pods
// is all that they depend on.
func TestDecideIsPure(t *testing.T) {
	for seed := range uint64(2000) {
		in := anyInput(rand.New(rand.NewPCG(seed, 1)))
		before, plan := copyOf(in), Decide(in)
		if !reflect.DeepEqual(before, in) {
			t.Fatalf("seed %d: the decision changed its input", seed)
		}
		if !reflect.DeepEqual(plan, Decide(in)) {
			t.Fatalf("seed %d: two decisions over one input differ", seed)
		}
		for i, pod := range before.Pods {
			trimmed, err := podfeed.Trim(pod)
			if err != nil {
				t.Fatal(err)
			}
			before.Pods[i] = trimmed.(*corev1.Pod)
		}
		if kept := Decide(before); effects(kept) != effects(plan) || !reflect.DeepEqual(kept.Status, plan.Status) {
			t.Fatalf("seed %d: of what is kept %s, of all %s", seed, effects(kept), effects(plan))
		}
	}
}

// SET-003, SET-050, SET-059, SET-060, SET-066, SET-085, SET-105: what must hold of every plan.
func TestPlansKeepTheirBounds(t *testing.T) {
	for seed := range uint64(5000) {
		in := anyInput(rand.New(rand.NewPCG(seed, 2)))
		plan := Decide(in)
		fail := func(format string, args ...any) {
			t.Fatalf("seed %d: %s; %s", seed, fmt.Sprintf(format, args...), effects(plan))
		}
		pods := map[string]*corev1.Pod{}
		for _, pod := range in.Pods {
			pods[pod.Name] = pod
		}
		for _, creation := range plan.Create {
			if pods[creation.Pod.Name] != nil {
				fail("%s is there", creation.Pod.Name)
			}
		}
		for _, d := range plan.Delete {
			if podview.IsTerminating(d.Pod) {
				fail("%s is being deleted", d.Pod.Name)
			}
		}
		if in.Set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			most := 1
			if len(plan.Delete) > 0 && plan.Delete[0].Reason == ReasonOutdated {
				most = in.Set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue()
			}
			if len(plan.Create)+len(plan.Delete) > most {
				fail("more than %d at once", most)
			}
		}
		checkAvailability(in, plan, fail)
		checkClaims(in, plan, fail)
	}
}

// checkAvailability: an update ends no available Pod when more than maxUnavailable would be without.
func checkAvailability(in Input, plan Plan, fail func(string, ...any)) {
	if in.Set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	first := 0
	if in.Set.Spec.Ordinals != nil {
		first = int(in.Set.Spec.Ordinals.Start)
	}
	replicas := int(*in.Set.Spec.Replicas)
	available := map[string]bool{}
	for _, pod := range in.Pods {
		ordinal, _ := ordinalOf(in.Set, pod.Name)
		available[pod.Name] = ordinal >= first && ordinal < first+replicas && !podview.IsTerminating(pod) &&
			pod.Status.Phase == corev1.PodRunning &&
			podview.IsAvailable(pod, time.Duration(in.Set.Spec.MinReadySeconds)*time.Second, in.Now)
	}
	count := func() (n int) {
		for _, yes := range available {
			if yes {
				n++
			}
		}
		return n
	}
	before := count()
	for _, d := range plan.Delete {
		available[d.Pod.Name] = false
	}
	if after := count(); after < before && after < replicas-in.Set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.
		IntValue() {
		fail("%d of %d stay available", after, replicas)
	}
}

// checkClaims: a Pod is made only with its claim, and a surplus Pod ends only when its claim is whose the policy
// says.
func checkClaims(in Input, plan Plan, fail func(string, ...any)) {
	if len(in.Set.Spec.VolumeClaimTemplates) == 0 {
		return
	}
	owners := map[string][]metav1.OwnerReference{}
	for name, existing := range in.Claims {
		owners[name] = existing.OwnerReferences
	}
	for _, next := range plan.Owners {
		owners[next.Name] = next.OwnerReferences
	}
	for _, creation := range plan.Create {
		name := "www-" + creation.Pod.Name
		made := slices.ContainsFunc(creation.Claims, func(c NewClaim) bool { return c.Claim.Name == name })
		if _, there := in.Claims[name]; made == there {
			fail("%s is there: %t, made: %t", name, there, made)
		}
	}
	_, whenScaled := retention(in.Set)
	for _, d := range plan.Delete {
		references, there := owners["www-"+d.Pod.Name]
		if d.Reason != ReasonScaledDown || !there {
			continue
		}
		byPod := slices.ContainsFunc(references, func(o metav1.OwnerReference) bool { return o.UID == d.Pod.UID })
		if byPod != (whenScaled == "Delete") {
			fail("the Pod owns its claim: %t", byPod)
		}
	}
}
