package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// explained are objects of each kind that wait for something, or for nothing.
const explained = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: x}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: lone}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: outer}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: outer}
subsets: [{addresses: [{ip: 192.0.2.1}, {ip: 192.0.2.2}], ports: [{port: 80}]}]
---
apiVersion: v1
kind: ReplicationController
metadata: {name: rc}
spec:
  replicas: 0
  selector: {app: rc}
  template: {metadata: {labels: {app: rc}}, spec: {containers: [{name: c, image: x}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: x}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: x}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: hello}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nosuch}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {secrets: "0"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: explained}
spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], storageClassName: by-hand,
  hostPath: {path: /explained}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: explained}
provisioner: nobody.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: never}
spec: {accessModes: [ReadWriteMany], storageClassName: keelson-local, resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: unmade}
spec: {accessModes: [ReadWriteOnce], storageClassName: explained, resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: unmade}
spec:
  nodeSelector: {no: where}
  containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: unmade}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: own, labels: {kubernetes.io/service-name: outer}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.3]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
---
apiVersion: v1
kind: Namespace
metadata: {name: explained}
---
apiVersion: v1
kind: Node
metadata: {name: explained}
spec: {unschedulable: true}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: lonely}
spec:
  schedulingGroup: {podGroupName: gang}
  containers: [{name: c, image: x}]
---
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec:
  containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}]
  volumes: [{name: d, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce],
    resources: {requests: {storage: 1Mi}}}}}}]
`

// first waits for an object of the kind, and returns its name.
func first(w *scenario.World, kind string) (name string) {
	w.Await(kind+" to be there", func() scenario.Answer {
		all := w.Kubectl("get", kind, "--output=name")
		line, _, _ := strings.Cut(strings.TrimSpace(all), "\n")
		if _, name, _ = strings.Cut(line, "/"); name == "" {
			return "there is none"
		}
		return ""
	})
	return name
}

// TestKeelExplain asks keel about an object of each kind: the controller that leads says what it waits for.
func TestKeelExplain(t *testing.T) {
	m := processes.Shared(t, 0)
	w := bare(t, m).World
	w.Cleanup(func() {
		_ = w.Client.CoreV1().PersistentVolumes().Delete(context.Background(), "explained", metav1.DeleteOptions{})
		_ = w.Client.StorageV1().StorageClasses().Delete(context.Background(), "explained", metav1.DeleteOptions{})
	})
	w.KubectlWith(explained, "apply", "-f", "-")
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	if _, err := w.Client.CoreV1().ConfigMaps("explained").Create(t.Context(), held,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Cleanup(func() {
		_, _ = w.Client.CoreV1().ConfigMaps("explained").Patch(context.Background(), held.Name, types.MergePatchType,
			[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	})
	w.Kubectl("delete", "namespace", "explained", "--wait=false")
	set, published := first(w, "replicasets"), first(w, "clustertrustbundles")
	for what, want := range map[string]string{
		"deployment web": "waits for 1 replica of the current template",
		"rs " + set:      "waits for 1 Pod to be ready",
		"rc rc":          "waits for nothing: 0 Pods available",
		"statefulset db": "waits for Pod db-0 to be available",
		"ds agent":       "waits for nothing: an available Pod of the current template on each of 0 nodes",
		"jobs pi":        "waits for the end of its suspension since",
		"cronjob hello":  `waits for the next time of its schedule "0 0 1 1 *"`,
		"pdb budget":     "waits for more healthy Pods: 0 of 1 are, and 1 must be",
		"pod db-0":       "podgc: waits for nothing: nothing takes it away",
		"pod scratch": "workload-controllers: ephemeralvolume waits for nothing: the claims of its ephemeral volumes " +
			"are made: scratch-d",
		"hpa scaler":        "waits for the target's scale",
		"quota quota":       "waits for less use of secrets: 0 of 0 are used",
		"pvc data":          "waits for a volume: waiting for first consumer",
		"pv explained":      "waits for nothing: it is free for a claim that it suffices for",
		"svc web":           "waits for 1 Pod to get a node: web-",
		"ep web":            "endpoint waits for 1 Pod that cannot be listed",
		"endpoints outer":   "endpointslicemirroring waits for nothing: 1 EndpointSlice mirror 2 endpoints",
		"service lone":      "waits for a Pod with the labels app=nobody: it selects none",
		"node explained":    "waits for the node to report for the first time",
		"ns explained":      "waits for whoever is responsible for these finalizers: example.com/hold",
		"namespace default": "waits for nothing: it is not being deleted",
		"ns kube-system": "rootca waits for nothing: its ConfigMap kube-root-ca.crt says what it must; " +
			"serviceaccount waits for nothing: it has the ServiceAccount default",
		"clustertrustbundle " + published: "waits for nothing: it holds the CA by which the apiserver is known",
		"pvc never": "waits for a volume that local.keelson.dev makes on no node: spec.accessModes[0]: ReadWriteMany " +
			"is not possible",
		"pvc unmade": `waits for the provisioner nobody.example.com of StorageClass "explained" to run`,
		"pod unmade": "workload-controllers, on PersistentVolumeClaim unmade: waits for the provisioner " +
			"nobody.example.com",
		"pods unmade":       `VolumeMissing: persistentvolumeclaim "unmade" has no volume: the provisioner `,
		"endpointslice own": "endpointslice leaves it to who made it",
		"sa default": "waits for nothing: Pods that name no ServiceAccount have it; it is made anew where somebody " +
			"deletes it",
		"configmap kept": "podgc, on owners and finalizers: waits for nothing: it has no owner and stays until",
		"replicasets.v1.apps " + set: "podgc, on owners and finalizers: waits for nothing: it stays as long as one " +
			"of its owners does: Deployment web; its dependents go after it unless other owners keep them: Pod " + set,
		"storageclass explained": "podgc, on owners and finalizers: waits for nothing: it has no owner",
		"cm held -n explained": "podgc, on owners and finalizers: waits for whoever is responsible for the finalizer " +
			"example.com/hold to take it off",
		"cm held -n nosuch":    "there is no ConfigMap held in namespace nosuch: there is no such namespace\n",
		"cm nosuch":            "there is no ConfigMap nosuch in namespace " + w.Namespace + "\n",
		"nosuch x":             `"nosuch" is no kind that the API serves; kubectl api-resources lists them`,
		"podgroup gang":        "waits for pod group gang to have at least 2 pods without scheduling gates",
		"pv nosuch":            "there is no PersistentVolume nosuch\n",
		"deployment nosuch":    "there is no Deployment nosuch in namespace " + w.Namespace,
		"endpointslice nosuch": "there is no EndpointSlice nosuch in namespace " + w.Namespace,
	} {
		w.Await("keel explain "+what, func() scenario.Answer {
			said, err := m.Keel(t.Context(), append([]string{"explain", "-n", w.Namespace}, strings.Fields(what)...)...)
			if err != nil {
				said += err.Error()
			}
			if !strings.Contains(said, want) {
				return scenario.Saw(said)
			}
			return ""
		})
	}
}
