package scenario

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// Die ends the daemon by SIGKILL at the failpoint while it does what ask asks for, and starts it again.
type Die func(w *World, d mesh.Daemon, failpoint string, ask func())

// Crashed lists the workloads whose daemons end between two writes that belong together. At any such moment,
// nothing is done twice and nothing is lost. It needs real daemons.
var Crashed = []struct {
	Name string
	Run  func(*World, Die)
}{
	{"DaemonSet", daemonSetThroughCrashes},
	{"StatefulSet", statefulSetThroughCrashes},
	{"CronJob", cronJobThroughCrash},
	{"Claims", claimsThroughCrashes},
	{"Evictions", evictionsThroughCrashes},
	{"Orphans", orphansThroughCrash},
	{"Resizes", resizesThroughCrashes},
	{"RestartsAll", restartsAllThroughCrashes},
}

// daemonSetThroughCrashes makes a Pod and replaces it, each once.
func daemonSetThroughCrashes(w *World, die Die) {
	journal := journalPods(w)
	die(w, mesh.WorkloadControllers, "workload-controllers/pod.create.after=crash", func() {
		w.KubectlWith(agent("agent", HelloV1, ""), "apply", "-f", "-")
	})
	awaitDaemonSet(w, "agent", HelloV1, w.Mesh.Nodes()...)
	die(w, mesh.WorkloadControllers, "workload-controllers/controllerrevision.create.after=crash", func() {
		w.Kubectl("set", "image", "daemonset/agent", "agent="+HelloV2)
	})
	awaitDaemonSet(w, "agent", HelloV2, w.Mesh.Nodes()...)
	if made := journal.names(w, "made"); len(made) != 2 {
		w.Errorf("the Pods %v were made, 2 are enough", made)
	}
	w.says("2", "get", "controllerrevisions", "--output=go-template={{len .items}}")
}

// statefulSetThroughCrashes makes the Pods of a StatefulSet with claims and replaces them, each once and in order.
func statefulSetThroughCrashes(w *World, die Die) {
	journal := journalPods(w)
	die(w, mesh.WorkloadControllers, "workload-controllers/persistentvolumeclaim.create.after=crash", func() {
		w.KubectlWith(stateful(2, HelloV1, claimTemplates), "apply", "-f", "-")
	})
	journal.expect(w, "made web-0, ready web-0, made web-1, ready web-1")
	for _, row := range []struct{ image, failpoint string }{
		{HelloV2, "controllerrevision.create.after=crash"}, {HelloV1, "pod.delete.after=crash"},
	} {
		die(w, mesh.WorkloadControllers, "workload-controllers/"+row.failpoint, func() {
			w.Kubectl("set", "image", "statefulset/web", "web="+row.image)
		})
		journal.expect(w, "ending web-1, gone web-1, made web-1, ready web-1, ending web-0, gone web-0, made web-0, "+
			"ready web-0")
		w.awaitStatefulSet(2, 2)
	}
	die(w, mesh.WorkloadControllers, "workload-controllers/pod.create.after=crash", func() {
		w.Kubectl("scale", "statefulset/web", "--replicas=3")
	})
	journal.expect(w, "made web-2, ready web-2")
	w.awaitStatefulSet(3, 3)
	w.says("3", "get", "pvc", "--output=go-template={{len .items}}")
	w.says("2", "get", "controllerrevisions", "--output=go-template={{len .items}}")
}

// cronJobThroughCrash starts a Job and ends the daemon before the status lists the Job. The restarted daemon
// recognises the Job, and because it still runs, starts no second one.
func cronJobThroughCrash(w *World, die Die) {
	die(w, mesh.WorkloadControllers, "workload-controllers/cronjob.job.create.after=crash", func() {
		w.KubectlWith(strings.Replace(everySecond, "spec:\n", "spec:\n  concurrencyPolicy: Forbid\n", 1), "apply", "-f",
			"-")
	})
	w.Await("the status to tell of the Job", func() Answer {
		c, err := w.Client.BatchV1().CronJobs(w.Namespace).Get(w.Context(), "hello", metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		jobs := listJobs(w, "app=hello")
		if len(jobs) != 1 {
			w.Fatalf("%d Jobs run at once", len(jobs))
		}
		if s := c.Status; len(s.Active) != 1 || s.Active[0].UID != jobs[0].UID {
			return Sawf("status %+v", s)
		}
		return ""
	})
}

// delayed is a volume of a class that binds when a Pod comes, beside a spare one.
const delayed = `
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, volumeBindingMode: WaitForFirstConsumer,
  provisioner: kubernetes.io/no-provisioner}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-a}, spec: {capacity: {storage: 1Gi},
  accessModes: [ReadWriteOnce], storageClassName: NS, hostPath: {path: /var/log}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-b}, spec: {capacity: {storage: 1Gi},
  accessModes: [ReadWriteOnce], storageClassName: NS, hostPath: {path: /var/log}}}
`

// claiming is a Pod with a claim of its name.
func claiming(name, class string) string {
	return strings.NewReplacer("NAME", name, "CLASS", class).Replace(`
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NAME}, spec: {accessModes: [ReadWriteOnce],
  storageClassName: CLASS, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: ` + HelloV1 + `, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: NAME}}]}}
`)
}

// claimsThroughCrashes gives each claim one volume: after its node was chosen, after its volume was made, and after it
// was bound but its Pod was not.
func claimsThroughCrashes(w *World, die Die) {
	of := strings.NewReplacer("NS", w.Namespace).Replace
	w.KubectlWith(of(delayed), "apply", "-f", "-")
	defer w.TryKubectl("", "delete", of("storageclass/NS"), of("pv/NS-a"), of("pv/NS-b"), "--wait=false")
	for _, row := range []struct {
		daemon                 mesh.Daemon
		name, class, failpoint string
	}{
		{mesh.Scheduler, "chosen", "keelson-local", "scheduler/claims.after=crash"},
		{mesh.WorkloadControllers, "made", "keelson-local", "workload-controllers/persistentvolume.create.after=crash"},
		{mesh.Scheduler, "reserved", w.Namespace, "scheduler/claims.after=crash"},
		{mesh.Scheduler, "bound", w.Namespace, "scheduler/bind.before=crash"},
	} {
		die(w, row.daemon, row.failpoint, func() { w.KubectlWith(claiming(row.name, row.class), "apply", "-f", "-") })
		w.Kubectl("wait", "pod", row.name, "--for=condition=Ready", "--timeout=60s")
		volumes := w.Kubectl("get", "pv", fmt.Sprintf(`--output=go-template={{range .items}}{{with .spec.claimRef}}`+
			`{{if and (eq .namespace %q) (eq .name %q)}}x{{end}}{{end}}{{end}}`, w.Namespace, row.name))
		if volumes != "x" {
			w.Errorf("claim %s has %d volumes", row.name, len(volumes))
		}
	}
}

// evictionsThroughCrashes evicts Pods by a taint: each evicted Pod gets the reason in its status once, and is
// deleted once.
func evictionsThroughCrashes(w *World, die Die) {
	node, taint := w.Mesh.Nodes()[0], "tests.keelson.dev/"+w.Namespace
	defer w.TryKubectl("", "taint", "nodes", node, taint+"-")
	seen := watchLastPods(w)
	w.Deploy(3, HelloV1)
	for round, failpoint := range []string{"evicted.status.after=1*off->crash", "evicted.delete.after=1*off->crash"} {
		before := w.Pods("app=web")
		die(w, mesh.PodGC, "podgc/"+failpoint, func() { w.Kubectl("taint", "nodes", node, taint+"=yes:NoExecute") })
		for i := range before {
			w.Await("Pod "+before[i].Name+" to go", func() Answer {
				last := seen.of(before[i].UID)
				c := podview.Condition(last, corev1.DisruptionTarget)
				if c == nil || c.Reason != "DeletionByTaintManager" || last.DeletionTimestamp == nil {
					return Sawf("deleted %v, conditions %+v", last.DeletionTimestamp, last.Status.Conditions)
				}
				return ""
			})
		}
		w.Kubectl("taint", "nodes", node, taint+"-")
		w.Deploy(3, HelloV1)
		if made, want := seen.count(w), 3*(round+2); made != want {
			w.Errorf("at %s: %d Pods were made, %d are enough", failpoint, made, want)
		}
	}
}

// orphansThroughCrash deletes a Deployment alone: what it owned stays, and forgets it.
func orphansThroughCrash(w *World, die Die) {
	w.Deploy(2, HelloV1)
	before := w.podUIDs("app=web")
	die(w, mesh.PodGC, "podgc/owners.patch.after=crash", func() {
		w.Kubectl("delete", "deployment", "web", "--cascade=orphan", "--wait=false")
	})
	var left *appsv1.ReplicaSet
	w.Await("the Deployment to go alone", func() Answer {
		if d := w.TryKubectl("", "get", "deployments", "--output=name").Stdout; d != "" {
			return Saw(d)
		}
		for _, left = range w.replicaSets() {
			if len(left.OwnerReferences) > 0 {
				return Sawf("owners %v", left.OwnerReferences)
			}
		}
		return ""
	})
	w.Deploy(2, HelloV1)
	if after := w.podUIDs("app=web"); left == nil || after != before {
		w.Errorf("Pods %s of %v, before %s", after, left, before)
	}
}
