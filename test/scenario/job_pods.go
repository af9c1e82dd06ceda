package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
)

// tracking is the finalizer of a Job's Pods.
const tracking = "batch.kubernetes.io/job-tracking"

// job is a Job named like that, with more lines of its spec. Its Pods run the command, or on and on without one.
func job(name, command string, spec ...string) string {
	container := "{name: main, image: " + Server + "}"
	if command != "" {
		container = fmt.Sprintf("{name: main, image: %s, command: [sh, -c, %q]}", Server, command)
	}
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  %s
  template:
    metadata: {labels: {of: %s}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [%s]
`, name, strings.Join(spec, "\n  "), name, container)
}

// JobPodAdoption deletes a Job alone: its Pods run on, without the finalizer. Another Job takes them over, with it, and
// is deleted with them.
//
// JOB-154 JOB-157 JOB-160 JOB-175
func JobPodAdoption(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(job("old", "", "parallelism: 2", "completions: 2"), "apply", "-f", "-")
	w.awaitActive("of=old", 2)
	stranger := `{"spec":{"terminationGracePeriodSeconds":1}}`
	w.Kubectl("run", "stranger", "--image="+Server, "--labels=made-by=old", "--overrides="+stranger)
	uid := w.Kubectl("get", "job", "old", "-o", "jsonpath={.metadata.uid}")
	before := w.podUIDs("of=old")
	w.Kubectl("delete", "job", "old", "--cascade=orphan")
	w.Await("Pods that nobody tracks", allPods(w, "of=old", func(pod *corev1.Pod) bool {
		return metav1.GetControllerOf(pod) == nil && !slices.Contains(pod.Finalizers, tracking)
	}))
	label := "batch.kubernetes.io/controller-uid: " + uid
	taker := job("new", "", "parallelism: 2", "completions: 2", "manualSelector: true",
		"selector: {matchLabels: {"+label+"}}")
	w.KubectlWith(strings.Replace(taker, "labels: {of: new}", "labels: {of: new, "+label+"}", 1), "apply", "-f", "-")
	w.Await("Pods of the new Job", allPods(w, "of=old", func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOf(pod)
		return owner != nil && owner.Name == "new" && string(owner.UID) != uid &&
			slices.Contains(pod.Finalizers, tracking)
	}))
	if after := w.podUIDs("of=old"); after != before || len(w.Pods("of=new")) > 0 {
		t.Errorf("Pods before %s, after %s, besides %v", before, after, w.Pods("of=new"))
	}
	w.Kubectl("delete", "job", "new", "--cascade=foreground")
	w.awaitNothing("jobs")
	if pods := w.Pods(""); len(pods) != 1 || pods[0].Name != "stranger" {
		t.Errorf("%d Pods are left", len(pods))
	}
}

// allPods returns a look at whether all Pods are as they should be.
func allPods(w *World, selector string, as func(*corev1.Pod) bool) func() Answer {
	return func() Answer {
		for _, pod := range w.Pods(selector) {
			if !as(&pod) {
				return Sawf("Pod %s has owners %v and finalizers %v", pod.Name, pod.OwnerReferences,
					pod.Finalizers)
			}
		}
		return ""
	}
}

// JobPodDisruption takes a Job's Pods away: one that is deleted is replaced, one that is evicted, too, and does not
// count where a policy says so.
//
// JOB-004 JOB-056 JOB-092 JOB-099 JOB-100 JOB-152 JOB-174 SAF-073
func JobPodDisruption(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(job("plain", "")+job("guarded", "", "backoffLimit: 0", "suspend: true",
		"podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}"), "apply", "-f",
		"-")
	gone := w.awaitActive("of=plain", 1)[0]
	w.Kubectl("delete", "pod", gone.Name, "--wait=false")
	awaitReplacement(w, "of=plain", gone.UID)

	w.Kubectl("patch", "job", "guarded", "--type=merge", "--patch",
		`{"spec":{"suspend":false,"template":{"metadata":{"labels":{"directed":"yes"}}}}}`)
	gone = w.awaitActive("of=guarded,directed=yes", 1)[0]
	if err := w.Client.PolicyV1().Evictions(w.Namespace).Evict(w.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: gone.Name}}); err != nil {
		t.Fatal(err)
	}
	awaitReplacement(w, "of=guarded", gone.UID)
	for name, failed := range map[string]int32{"plain": 1, "guarded": 0} {
		w.Await("the failures of Job "+name, func() Answer {
			found, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
			if err != nil || found.Status.Failed != failed || len(found.Status.UncountedTerminatedPods.Failed) > 0 {
				return Saw(fmt.Sprint(err, found.Status))
			}
			return ""
		})
	}
}

// awaitReplacement waits until an active Pod has taken the place of one that is gone.
func awaitReplacement(w *World, selector string, gone types.UID) {
	w.Helper()
	w.Await("another Pod of "+selector, func() Answer {
		pods := w.awaitActive(selector, 1)
		if pods[0].UID == gone || len(w.Pods(selector)) > 1 {
			return "the old one is there"
		}
		return ""
	})
}

// JobPatterns runs a Job of each pattern: a Pod for each of five items, a queue that Pods work off together, items by
// index, Pods that need each other, and one Job for each item.
//
// JOB-005 JOB-011 JOB-034 JOB-035 JOB-135 JOB-161
func JobPatterns(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(job("items", "exit 0", "completions: 5", "parallelism: 2")+
		job("queue", "exit 0", "parallelism: 3")+
		job("static", "exit 0", "completions: 5", "parallelism: 2", "completionMode: Indexed")+
		job("together", "", "completions: 4", "parallelism: 4", "completionMode: Indexed")+
		job("item-a", "exit 0")+job("item-b", "exit 0"), "apply", "-f", "-")
	w.awaitActive("of=together", 4)
	for name, want := range map[string]int32{"items": 5, "queue": 0, "static": 5, "item-a": 1, "item-b": 1} {
		w.Kubectl("wait", "--for=condition=Complete", "job/"+name, "--timeout=60s")
		found, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods := int32(0)
		for _, pod := range w.Pods("batch.kubernetes.io/controller-uid=" + string(found.UID)) {
			if pod.Status.Phase == corev1.PodSucceeded {
				pods++
			}
			if slices.Contains(pod.Finalizers, tracking) {
				t.Errorf("Pod %s is still tracked", pod.Name)
			}
		}
		if s := found.Status; s.Succeeded != pods || want > 0 && pods != want || pods == 0 || s.Failed != 0 {
			t.Errorf("Job %s: %d Pods have succeeded, status %+v", name, pods, s)
		}
	}
	w.Kubectl("delete", "pods", "-l", "of=items")
	if got := w.Kubectl("get", "job", "items", "-o", "jsonpath={.status.succeeded}"); got != "5" {
		t.Errorf("without its Pods the Job counts %s", got)
	}
}
