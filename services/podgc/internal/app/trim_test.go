package app

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"keelson.dev/services/podgc/internal/collectors/pods"
	"keelson.dev/services/podgc/internal/collectors/ttlafterfinished"
)

var now = time.Unix(1_700_000_000, 0)

// some returns one of the values.
func some[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func anyPod(r *rand.Rand, fill *randfill.Filler, i int) *corev1.Pod {
	pod := &corev1.Pod{}
	fill.Fill(&pod.ObjectMeta)
	fill.Fill(&pod.Spec.Containers)
	fill.Fill(&pod.Spec.Tolerations)
	fill.Fill(&pod.Status)
	pod.Name = fmt.Sprint("pod-", i)
	pod.Spec.NodeName = some(r, "", "n0", "n1", "gone")
	pod.Status.Phase = some(r, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	return pod
}

// anyNode returns a Node, and the same as the cache has it.
func anyNode(t *testing.T, r *rand.Rand, fill *randfill.Filler) (whole, kept *corev1.Node) {
	node := &corev1.Node{}
	fill.Fill(&node.ObjectMeta)
	fill.Fill(&node.Status)
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: some(r, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown),
	})
	node.Spec.Taints = []corev1.Taint{{Key: some(r, corev1.TaintNodeOutOfService, corev1.TaintNodeUnreachable)}}
	trimmed, err := trimNode(node.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	return node, trimmed.(*corev1.Node)
}

// What the cache keeps of Pods and Nodes is all that a decision depends on, and all that the graph of owners knows
// of a Pod.
func TestTrimmingChangesNoDecision(t *testing.T) {
	for seed := range int64(1000) {
		r, fill := rand.New(rand.NewPCG(uint64(seed), 4)), randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2)
		whole := pods.Input{Now: now, Threshold: r.IntN(4), Nodes: map[string]*corev1.Node{},
			MissedSince: map[string]time.Time{"gone": now.Add(-time.Hour)}}
		kept := whole
		kept.Nodes = map[string]*corev1.Node{}
		for _, name := range []string{"n0", "n1"} {
			whole.Nodes[name], kept.Nodes[name] = anyNode(t, r, fill)
		}
		for i := range 8 {
			pod := anyPod(r, fill, i)
			trimmed, err := trimPod(pod.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			whole.Pods, kept.Pods = append(whole.Pods, pod), append(kept.Pods, trimmed.(*corev1.Pod))
			if got, want := edges(trimmed.(*corev1.Pod)), edges(pod); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: of its owners and finalizers %+v are kept, want %+v", seed, got, want)
			}
			// The patch that marks a collected Pod replaces all its conditions.
			if got := trimmed.(*corev1.Pod).Status; !reflect.DeepEqual(got.Conditions, pod.Status.Conditions) ||
				got.Phase != pod.Status.Phase {
				t.Fatalf("seed %d: of its status %+v is kept", seed, got)
			}
		}
		if got, want := summary(pods.Decide(kept)), summary(pods.Decide(whole)); got != want {
			t.Fatalf("seed %d: of what is kept %s, of all %s", seed, got, want)
		}
	}
}

// What the cache keeps of a Job suffices to decide when it must be deleted.
func TestTrimmingTellsWhenJobsGo(t *testing.T) {
	due := 0
	for seed := range int64(1000) {
		job := &batchv1.Job{}
		randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2).Fill(job)
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete,
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now}})
		trimmed, err := trimJob(job.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		whole := ttlafterfinished.Decide(ttlafterfinished.Input{Now: now, Job: job})
		if got := ttlafterfinished.Decide(ttlafterfinished.Input{Now: now,
			Job: trimmed.(*batchv1.Job)}); got != whole {
			t.Fatalf("seed %d: of what is kept %+v, of all %+v", seed, got, whole)
		}
		if whole != (ttlafterfinished.Plan{}) {
			due++
		}
	}
	if due < 100 {
		t.Errorf("only %d Jobs of 1000 have to go", due)
	}
}

// edges is what the graph of owners knows of an object.
func edges(pod *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences, Finalizers: pod.Finalizers,
	}
}

func summary(plan pods.Plan) string {
	text := fmt.Sprint(plan.MissedSince)
	for _, c := range plan.Collect {
		text += fmt.Sprintf(" %s %s/%s %v %v;", c.Reason, c.Pod.Namespace, c.Pod.Name, c.MarkFailed, c.Disruption)
	}
	return text
}
