package scenario

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"keelson.dev/test/mesh"
)

// oneOfEach has an object of every kind that a controller keeps, none of which has anything left to do.
const oneOfEach = `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: IMAGE}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: main, image: IMAGE}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data}
spec:
  replicas: 2
  serviceName: data
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec: {containers: [{name: main, image: IMAGE}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: IMAGE}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: suspended}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: IMAGE}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: most}
spec: {hard: {pods: "50", count/configmaps: "50"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: unused}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: elsewhere}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 80}]}]
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: NAMESPACE}
spec: {cidrs: [10.97.6.0/28]}
---
`

// NoWritesAtRest makes an object of every kind of workload and expects that a mesh in which nothing changes any more
// writes nothing but Leases.
//
// POD-010
func NoWritesAtRest(t *testing.T, m mesh.Mesh) {
	w := AtRest(t, m)
	const long = 32 * time.Second
	if n, since := WritesIn(w, long); n != 0 {
		t.Errorf("a settled mesh made %d writes in %v beside those of Leases; changed are%s", n, long,
			ChangedSince(w, since))
	}
}

// AtRest makes an object of every kind of workload, and waits until the mesh has nothing left to do.
func AtRest(t *testing.T, m mesh.Mesh) *World {
	t.Helper()
	w := In(t, m)
	t.Cleanup(func() {
		_ = w.Client.NetworkingV1().ServiceCIDRs().Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
	})
	w.KubectlWith(web(3, HelloV1, "")+"---\n"+service+strings.NewReplacer("IMAGE", HelloV1, "NAMESPACE", w.Namespace).
		Replace(oneOfEach), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	makeObjectsOfOtherControllers(w)
	// A recorder of Events that was not heard tries again after up to ten seconds. Real Pods are measured, which an
	// autoscaler looks at every 15 s.
	quiet := 12 * time.Second
	if m.RealContainers() {
		quiet = 20 * time.Second
	}
	w.Await("a mesh with nothing left to do", func() Answer {
		if n, since := WritesIn(w, quiet); n > 0 {
			return Sawf("%v writes; changed are%s", n, ChangedSince(w, since))
		}
		return ""
	})
	return w
}

// makeObjectsOfOtherControllers makes what a controller has to act on: a Pod with a claim of its own, one with a volume
// that a driver attached, a group that is scheduled, a Secret with an account's token, requests for certificates, and a
// Job that is over and has a day to live. The scenario plays the driver, but not its part on the nodes, without which
// no real container starts.
func makeObjectsOfOtherControllers(w *World) {
	w.Helper()
	w.KubectlWith(strings.Replace(scratch, "NAME", "scratching", 1), "apply", "-f", "-")
	pods := []string{"scratching", "easy", "picky"}
	if !w.Mesh.RealContainers() {
		attachTo(w).drive()
		w.KubectlWith(attaching("attaching", ""), "apply", "-f", "-")
		pods = append(pods, "attaching")
	}
	node := w.Mesh.Nodes()[0]
	label := "tests.keelson.dev/" + w.Namespace
	w.Kubectl("label", "node", node, label+"=yes")
	w.Cleanup(func() {
		_, _ = w.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, label), metav1.PatchOptions{})
	})
	w.KubectlWith(fmt.Sprintf(gang, label), "apply", "-f", "-")
	makeCredentials(w)
	w.Kubectl(append([]string{"wait", "pod", "--for=condition=Ready", "--timeout=60s"}, pods...)...)
	w.KubectlWith(
		strings.Replace(managedJob, "spec:", "spec:\n  ttlSecondsAfterFinished: 86400", 1),
		"apply",
		"-f",
		"-",
	)
	job, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), "pi", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	finishJob(w, job)
}

// makeCredentials makes a Secret that is given an account's token, a request for a certificate that is signed, and
// one that is not decided yet.
func makeCredentials(w *World) {
	w.Helper()
	w.Kubectl("create", "serviceaccount", "robot")
	w.KubectlWith(accountToken, "apply", "-f", "-")
	_, request := certificateRequest(w, pkix.Name{CommonName: "ann"})
	signed, pending := w.Namespace+"-signed", w.Namespace+"-pending"
	w.Cleanup(func() {
		for _, name := range []string{signed, pending} {
			_ = w.Client.CertificatesV1().CertificateSigningRequests().Delete(context.Background(), name,
				metav1.DeleteOptions{})
		}
	})
	for _, name := range []string{signed, pending} {
		w.KubectlWith(asks(name, "kubernetes.io/kube-apiserver-client", request, "client auth"), "create", "-f", "-")
	}
	w.Kubectl("certificate", "approve", signed)
	w.Kubectl("wait", "csr", signed, "--for=jsonpath={.status.certificate}", "--timeout=60s")
	w.Kubectl("wait", "secret", "robot-token", "--for=jsonpath={.data.token}", "--timeout=60s")
}

// WritesIn counts the writes into the store in a time from now on that are not of Leases, and returns the version of
// the store before: every write raises it by one.
func WritesIn(w *World, period time.Duration) (others, since int64) {
	w.Helper()
	leases := w.Client.CoordinationV1().Leases(metav1.NamespaceAll)
	version := func() (string, int64) {
		list, err := leases.List(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatalf("listing Leases: %v", err)
		}
		return list.ResourceVersion, storeRevision(w, list.ResourceVersion)
	}
	from, before := version()
	changes, err := leases.Watch(w.Context(), metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		w.Fatalf("watching Leases: %v", err)
	}
	defer changes.Stop()
	end := time.After(period)
	after, renewals := int64(0), int64(0)
	for {
		select {
		case <-end:
			_, after = version()
		case change := <-changes.ResultChan():
			object, ok := change.Object.(metav1.Object)
			if !ok {
				w.Fatalf("watching Leases: %v %v", change.Type, change.Object)
			}
			// Leases are renewed all the time, so one that is renewed later comes soon.
			if at := storeRevision(w, object.GetResourceVersion()); after > 0 && at > after {
				return after - before - renewals, before
			}
			renewals++
		}
	}
}

func storeRevision(w *World, version string) int64 {
	w.Helper()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// ChangedSince names the objects that were written after a version of the store.
func ChangedSince(w *World, version int64) string {
	w.Helper()
	client, err := metadata.NewForConfig(w.Mesh.Admin())
	if err != nil {
		w.Fatal(err)
	}
	lists, err := discovery.ServerPreferredResources(w.Client.Discovery())
	if err != nil {
		w.Fatal(err)
	}
	var changed strings.Builder
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			w.Fatal(err)
		}
		for i := range list.APIResources {
			objects, err := client.Resource(group.WithResource(list.APIResources[i].Name)).List(w.Context(),
				metav1.ListOptions{})
			if err != nil || list.APIResources[i].Name == "leases" {
				continue // not all that is served is stored
			}
			for j := range objects.Items {
				o := &objects.Items[j]
				if at, err := strconv.ParseInt(o.ResourceVersion, 10, 64); err == nil && at > version {
					fmt.Fprintf(&changed, " %s/%s/%s", list.APIResources[i].Name, o.Namespace, o.Name)
				}
			}
		}
	}
	return changed.String()
}
