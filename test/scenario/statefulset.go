package scenario

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// stateful is a StatefulSet web with the Pods of web; extra are further lines of its spec.
func stateful(replicas int, image, extra string) string {
	return strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "spec:\n  replicas", "spec:\n"+extra+
		"  serviceName: web\n  replicas").Replace(web(replicas, image, ""))
}

// awaitStatefulSet waits until the StatefulSet web says that it has so many Pods, all ready, and so many updated.
func (w *World) awaitStatefulSet(replicas, updated int32) *appsv1.StatefulSet {
	w.Helper()
	var set *appsv1.StatefulSet
	w.Await(fmt.Sprintf("StatefulSet web with %d Pods, %d of them updated", replicas, updated), func() Answer {
		var err error
		if set, err = w.Client.AppsV1().StatefulSets(w.Namespace).Get(w.Context(), "web",
			metav1.GetOptions{}); err != nil {
			return Saw(err.Error())
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.ReadyReplicas != replicas ||
			s.AvailableReplicas != replicas || s.UpdatedReplicas != updated {
			return Sawf("%+v", s)
		}
		return ""
	})
	return set
}

// statefulImages returns the images of the Pods web-0, web-1 and so on, by their versions.
func statefulImages(w *World) string {
	w.Helper()
	return strings.NewReplacer("keelson.dev/hello:", "").Replace(w.Kubectl("get", "pods", "--selector=app=web",
		"--sort-by=metadata.name", "--output=jsonpath={.items[*].spec.containers[0].image}"))
}

// StatefulSetOrderedReady makes three Pods in order, replaces them from the last to the first, at first only a
// part of them, rolls back to the first revision, and deletes them in order.
//
// POD-042 SET-001 SET-003 SET-017 SET-021 SET-022 SET-031 SET-036 SET-038 SET-041 SET-049 SET-057 SET-058 SET-061
// SET-063 SET-074 SET-075 SET-076 SET-078 SET-079 SET-082 SET-108 SET-111 SET-112 SET-113
func StatefulSetOrderedReady(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	journal := journalPods(w)
	if got := w.KubectlWith(stateful(3, HelloV1, ""), "apply", "-f", "-"); got != "statefulset.apps/web created\n" {
		t.Errorf("apply printed %q", got)
	}
	journal.expect(w, "made web-0, ready web-0, made web-1, ready web-1, made web-2, ready web-2")
	first := w.awaitStatefulSet(3, 3).Status.CurrentRevision
	w.says("pod/web-1", "get", "pods", "--selector=apps.kubernetes.io/pod-index=1", "--output=name")
	w.says("pod/web-2", "get", "pods", "--selector=statefulset.kubernetes.io/pod-name=web-2", "--output=name")
	if row := strings.Fields(w.Kubectl("get", "sts", "web", "--no-headers", "-o", "wide")); row[1] != "3/3" ||
		strings.Join(row[3:], " ") != "web "+HelloV1 {
		t.Errorf("its line is %v", row)
	}
	w.awaitOutput([]string{"Update Strategy:        RollingUpdate", "Partition:            0",
		"Pods Status:    3 Running / 0 Waiting / 0 Succeeded / 0 Failed", "statefulset-controller",
		"create Pod web-2 in StatefulSet web successful"}, "describe", "statefulset", "web")

	setPartition(w, 2)
	w.says("statefulset.apps/web image updated", "set", "image", "statefulset/web", "web="+HelloV2)
	journal.expect(w, "ending web-2, gone web-2, made web-2, ready web-2")
	half := w.awaitStatefulSet(3, 1).Status
	if half.CurrentRevision != first || half.UpdateRevision == first || half.CurrentReplicas != 2 ||
		statefulImages(w) != "1 1 2" {
		t.Errorf("of images %s: %+v", statefulImages(w), half)
	}
	w.says("partitioned roll out complete: 1 new pods have been updated...", "rollout", "status", "sts/web")
	w.Kubectl("delete", "pod", "web-0")
	journal.expect(w, "ending web-0, gone web-0, made web-0, ready web-0")
	if got := statefulImages(w); got != "1 1 2" {
		t.Errorf("a Pod below the partition was deleted; then the images are %s", got)
	}

	setPartition(w, 0)
	journal.expect(w,
		"ending web-1, gone web-1, made web-1, ready web-1, ending web-0, gone web-0, made web-0, ready web-0")
	if got := w.awaitStatefulSet(3, 3).Status; got.CurrentRevision != half.UpdateRevision ||
		statefulImages(w) != "2 2 2" {
		t.Errorf("of images %s: %+v", statefulImages(w), got)
	}
	w.says("statefulset.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>", "rollout", "history",
		"sts/web")
	w.says("statefulset.apps/web rolled back", "rollout", "undo", "sts/web")
	journal.expect(w,
		"ending web-2, gone web-2, made web-2, ready web-2, ending web-1, gone web-1, made web-1, ready web-1, "+
			"ending web-0, gone web-0, made web-0, ready web-0")
	if got := w.awaitStatefulSet(3, 3).Status; got.CurrentRevision != first || statefulImages(w) != "1 1 1" {
		t.Errorf("of images %s after the undo: %+v, at first %s", statefulImages(w), got, first)
	}
	w.says("statefulset.apps/web skipped rollback (current template already matches revision 3)", "rollout", "undo",
		"sts/web", "--to-revision=3")

	w.says("statefulset.apps/web scaled", "scale", "statefulset", "web", "--replicas=1")
	journal.expect(w, "ending web-2, gone web-2, ending web-1, gone web-1")
	w.says("statefulset.apps/web scaled", "scale", "statefulset", "web", "--replicas=2")
	journal.expect(w, "made web-1, ready web-1")
	w.Kubectl("scale", "statefulset", "web", "--replicas=0")
	journal.expect(w, "ending web-1, gone web-1, ending web-0, gone web-0")
	w.awaitStatefulSet(0, 0)
	w.Kubectl("delete", "statefulset", "web")
	w.awaitNothing("statefulsets", "controllerrevisions", "pods")
}

// setPartition sets from which ordinal on the StatefulSet web is updated.
func setPartition(w *World, ordinal int) {
	w.Helper()
	w.Kubectl("patch", "statefulset", "web", "--patch", fmt.Sprintf(
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}`, ordinal))
}

// StatefulSetParallel makes all Pods though none gets ready, from an ordinal on, and ends all at once.
//
// SET-033 SET-068 SET-070
func StatefulSetParallel(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(stateful(5, simnode.NeverStart, "  podManagementPolicy: Parallel\n  ordinals: {start: 5}\n"), "apply",
		"-f", "-")
	w.Await("five Pods", func() Answer {
		names := w.Kubectl("get", "pods", "--selector=app=web", "--sort-by=metadata.name",
			"--output=jsonpath={.items[*].metadata.name}")
		if names != "web-5 web-6 web-7 web-8 web-9" {
			return Sawf("Pods: %s", names)
		}
		return ""
	})
	w.Kubectl("scale", "statefulset", "web", "--replicas=0")
	w.awaitNothing("pods")
}

// StatefulSetOnDelete leaves its Pods alone until a user deletes one.
//
// SET-072
func StatefulSetOnDelete(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(stateful(3, HelloV1, "  updateStrategy: {type: OnDelete}\n"), "apply", "-f", "-")
	w.awaitStatefulSet(3, 3)
	w.Kubectl("set", "image", "statefulset/web", "web="+HelloV2)
	w.awaitStatefulSet(3, 0)
	w.Kubectl("delete", "pod", "web-1")
	w.awaitStatefulSet(3, 1)
	if got := statefulImages(w); got != "1 2 1" {
		t.Errorf("the images are %s", got)
	}
}

// StatefulSetStuckRollout gets stuck on an image that cannot be pulled. The old image alone does not help, deleting the
// Pod does. With the annotation the old image is enough.
//
// SET-023 SET-088 SET-089 SET-090
func StatefulSetStuckRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(stateful(3, HelloV1, ""), "apply", "-f", "-")
	w.awaitStatefulSet(3, 3)
	broken := func() string {
		w.Kubectl("set", "image", "statefulset/web", "web="+simnode.NeverStart)
		var uid string
		w.Await("the broken Pod", func() Answer {
			for _, pod := range w.Pods("statefulset.kubernetes.io/pod-name=web-2") {
				if uid = string(pod.UID); pod.Spec.Containers[0].Image == simnode.NeverStart &&
					pod.Status.Phase == corev1.PodPending && len(pod.Status.ContainerStatuses) > 0 {
					return ""
				}
			}
			return Saw("images: " + statefulImages(w))
		})
		return uid
	}
	before := broken()
	w.Kubectl("set", "image", "statefulset/web", "web="+HelloV1)
	w.Await("the set to have seen the old image again", func() Answer {
		set, err := w.Client.AppsV1().StatefulSets(w.Namespace).Get(w.Context(), "web", metav1.GetOptions{})
		if err != nil || set.Status.ObservedGeneration != set.Generation {
			return Sawf("%v, %v", set.Status, err)
		}
		return ""
	})
	if got := w.pod("web-2"); string(got.UID) != before {
		t.Errorf("the broken Pod was replaced")
	}
	w.Kubectl("delete", "pod", "web-2")
	w.awaitStatefulSet(3, 3)

	w.Kubectl("annotate", "statefulset", "web", "keelson.dev/replace-never-ready=true")
	broken()
	w.Kubectl("set", "image", "statefulset/web", "web="+HelloV2)
	w.awaitStatefulSet(3, 3)
	w.awaitOutput([]string{"ReplacingNeverReadyPod"}, "describe", "statefulset", "web")
}

// StatefulSetTemplateChange changes resources, labels and annotations of the template, each of which replaces the Pods,
// and applies manifests with and without a number of replicas over one that was scaled.
//
// DEP-235 DEP-237 SET-071 SET-109 SET-110
func StatefulSetTemplateChange(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	manifest := stateful(2, HelloV1, "")
	w.KubectlWith(manifest, "apply", "-f", "-")
	w.awaitStatefulSet(2, 2)
	w.Kubectl("rollout", "status", "sts/web")
	for _, change := range [][]string{
		{"set", "resources", "statefulset/web", "--limits=memory=64Mi"}, {"rollout", "restart", "statefulset/web"},
		{"patch", "statefulset", "web", "--patch", `{"spec":{"template":{"metadata":{"labels":{"tier":"a"}}}}}`},
	} {
		before := w.podUIDs("app=web")
		w.Kubectl(change...)
		w.awaitStatefulSet(2, 2)
		for uid := range strings.FieldsSeq(strings.Trim(w.podUIDs("app=web"), "map[]")) {
			if strings.Contains(before, uid) {
				t.Errorf("after kubectl %s a Pod is still there", strings.Join(change, " "))
			}
		}
	}
	if pod := w.pod("web-0"); pod.Labels["tier"] != "a" || pod.Spec.Containers[0].Resources.Limits.Memory().String() !=
		"64Mi" || pod.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("labels %v, annotations %v, limits %v", pod.Labels, pod.Annotations, pod.Spec.Containers[0].Resources)
	}
	if got := w.Kubectl("rollout", "status", "statefulsets/web", "--watch=false"); !strings.Contains(got,
		"partitioned roll out complete: 2 new pods have been updated...") {
		t.Errorf("rollout status printed %q", got)
	}
	w.Kubectl("scale", "statefulset", "web", "--replicas=3")
	w.awaitStatefulSet(3, 3)
	w.KubectlWith(manifest, "apply", "-f", "-")
	w.awaitStatefulSet(2, 2)

	w.Kubectl("delete", "statefulset", "web")
	w.awaitNothing("statefulsets", "pods")
	bare := strings.Replace(manifest, "  replicas: 2\n", "", 1)
	w.KubectlWith(bare, "apply", "-f", "-")
	w.awaitStatefulSet(1, 1)
	w.Kubectl("scale", "statefulset", "web", "--replicas=2")
	w.awaitStatefulSet(2, 2)
	if got := w.KubectlWith(bare, "apply", "-f", "-"); got != "statefulset.apps/web unchanged\n" {
		t.Errorf("apply printed %q", got)
	}
	w.awaitStatefulSet(2, 2)
}

const claimTemplates = `  volumeClaimTemplates:
  - metadata: {name: www}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// StatefulSetClaims makes a claim for each Pod, of the default class, keeps it for the next Pod of its name, and lets
// it go as the policy says.
//
// SET-008 SET-018 SET-053 SET-055 SET-056 SET-019 SET-024 SET-050 SET-051 SET-054 SET-094 SET-096 SET-097 SET-098
// SET-100 SET-101 SET-102
func StatefulSetClaims(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(stateful(3, HelloV1, claimTemplates), "apply", "-f", "-")
	w.awaitStatefulSet(3, 3)
	claims := func(want string) {
		t.Helper()
		w.Await("the claims "+want, func() Answer {
			got := w.Kubectl("get", "pvc", "--selector=app=web", "--sort-by=metadata.name",
				"--output=jsonpath={.items[*].metadata.name}")
			if got != want {
				return Sawf("claims: %s", got)
			}
			return ""
		})
	}
	claims("www-web-0 www-web-1 www-web-2")
	uid := func() string { return w.Kubectl("get", "pvc", "www-web-1", "--output=jsonpath={.metadata.uid}") }
	before := uid()
	if got := w.Kubectl("get", "pvc", "www-web-1", "--output=jsonpath={.spec.storageClassName} "+
		"{.spec.accessModes[0]} {.spec.resources.requests.storage} {.status.phase}"); got !=
		"keelson-local ReadWriteOnce 1Gi Bound" {
		t.Errorf("a claim of %s", got)
	}
	if got := w.pod("web-1").Spec.Volumes[0]; got.Name != "www" || got.PersistentVolumeClaim.ClaimName != "www-web-1" {
		t.Errorf("a volume %+v", got)
	}
	w.Kubectl("scale", "statefulset", "web", "--replicas=1")
	w.awaitStatefulSet(1, 1)
	w.Kubectl("scale", "statefulset", "web", "--replicas=3")
	w.awaitStatefulSet(3, 3)
	claims("www-web-0 www-web-1 www-web-2")

	retain := func(whenDeleted, whenScaled string) {
		t.Helper()
		w.Kubectl("patch", "statefulset", "web", "--patch", fmt.Sprintf(
			`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":%q,"whenScaled":%q}}}`, whenDeleted,
			whenScaled))
	}
	retain("Retain", "Delete")
	w.Kubectl("delete", "pod", "web-1")
	w.awaitStatefulSet(3, 3)
	if after := uid(); after != before {
		t.Errorf("the claim www-web-1 is %s, was %s", after, before)
	}
	w.Kubectl("scale", "statefulset", "web", "--replicas=2")
	claims("www-web-0 www-web-1")
	retain("Delete", "Retain")
	w.Await("the set to own its claims", func() Answer {
		if got := w.Kubectl("get", "pvc", "--selector=app=web",
			"--output=jsonpath={.items[*].metadata.ownerReferences[0].kind}"); got != "StatefulSet StatefulSet" {
			return Sawf("owners: %s", got)
		}
		return ""
	})
	w.Kubectl("scale", "statefulset", "web", "--replicas=1")
	w.awaitStatefulSet(1, 1)
	claims("www-web-0 www-web-1")
	w.Kubectl("delete", "statefulset", "web")
	claims("")
	w.awaitNothing("pods", "controllerrevisions")
	w.Await("the volumes to go", func() Answer {
		return Left(w.Kubectl("get", "pv", "--output=jsonpath={.items[?(@.spec.claimRef.namespace==\""+w.Namespace+
			"\")].metadata.name}"))
	})
}
