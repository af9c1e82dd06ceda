package scenario

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"keelson.dev/test/mesh"
)

// namedPods are what has names: a StatefulSet and a Pod with a host name below a headless Service, an ordinary Service
// of the same Pods, another name for that, and a Pod that is never ready behind a Service that shows such Pods and one
// that does not.
const namedPods = `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  clusterIP: None
  selector: {app: web}
  ports: [{name: http, port: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: early}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: never}
  ports: [{name: http, port: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: strict}
spec:
  clusterIP: None
  selector: {app: never}
  ports: [{name: http, port: 8080}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web, of: set}}
  template:
    metadata: {labels: {app: web, of: set}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, labels: {app: web}}
spec:
  hostname: lone
  subdomain: web
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ` + Server + `}]
---
apiVersion: v1
kind: Pod
metadata: {name: late, labels: {app: never}}
spec:
  hostname: late
  subdomain: early
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    readinessProbe: {httpGet: {path: /nosuch, port: 8080}, periodSeconds: 1}
`

// Names looks every kind of name up that Services and Pods have: as the API of a cluster's DNS defines them, from a Pod
// of the same namespace, of another one, and from the node.
//
// SET-044 SET-046
func Names(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(namedPods+fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {type: ExternalName, externalName: front.%s.svc.cluster.local}
`, w.Namespace), "apply", "-f", "-")
	w.startClients()
	w.Kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=60s")
	w.Await("the unready Pod's address", func() string {
		if w.addresses("app=never")["late"] == "" {
			return "it has none"
		}
		return ""
	})
	ips, front, domain := w.addresses("app=web"), w.service("front").Spec.ClusterIP, w.Namespace+".svc.cluster.local"
	for _, client := range []string{"in-pod-1", "on-node-1"} {
		for _, name := range []string{"front", "front." + w.Namespace, "front." + w.Namespace + ".svc",
			"front." + domain + "."} {
			w.awaitLookup(client, "A", name, front)
		}
		w.awaitLookup(client, "A", "web", slices.Collect(maps.Values(ips))...)
		w.awaitLookup(client, "A", "web-0.web", ips["web-0"])
		w.awaitLookup(client, "A", "web-1.web."+domain+".", ips["web-1"])
		w.awaitLookup(client, "A", "lone.web", ips["alone"])
		w.awaitNoName(client, "web-2.web."+domain+".")
		w.awaitLookup(client, "PTR", front, "front."+domain+".")
		w.awaitLookup(client, "PTR", w.addresses("app=never")["late"], "late.early."+domain+".")
		w.awaitLookup(client, "SRV", "_http._tcp.front."+domain+".", "front."+domain+".:80")
		w.awaitLookup(client, "SRV", "_http._tcp.web."+domain+".", "web-0.web."+domain+".:8080",
			"web-1.web."+domain+".:8080", "lone.web."+domain+".:8080")
		w.awaitLookup(client, "CNAME", "other."+domain+".", "front."+domain+".")
		w.awaitLookup(client, "A", "other", front)
		w.awaitLookup(client, "A", "late.early", w.addresses("app=never")["late"])
		w.awaitNoName(client, "strict")
	}
	w.says("web-0.web."+domain, "exec", "web-0", "--", "hostname", "-f")
	w.nameComesAndGoes(ips["web-0"], domain)
}

// nameComesAndGoes follows the name of a Pod that is replaced, and that of a Service that is deleted.
func (w *World) nameComesAndGoes(before, domain string) {
	w.Helper()
	w.Kubectl("delete", "pod", "web-0")
	w.Kubectl("wait", "--for=condition=Ready", "pod/web-0", "--timeout=60s")
	after := w.addresses("app=web")["web-0"]
	if after == before {
		w.Logf("the new Pod has the address of the old one: %s", after)
	}
	w.awaitLookup("in-pod-1", "A", "web-0.web", after)
	w.Kubectl("delete", "service", "front")
	w.awaitNoName("in-pod-1", "front."+domain+".")
}

// seedPod waits in its init containers for two Services by name, as the handbook's does.
const seedPod = `apiVersion: v1
kind: Pod
metadata: {name: myapp-pod, labels: {app.kubernetes.io/name: MyApp}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: myapp-container, image: ` + Server + `}]
  initContainers:
  - name: init-myservice
    image: ` + Server + `
    command: [sh, -c, "until nslookup
      myservice.$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace).svc.cluster.local;
      do echo waiting for myservice; sleep 2; done"]
  - name: init-mydb
    image: ` + Server + `
    command: [sh, -c, "for i in $(seq 1 100); do sleep 1; if nslookup mydb; then exit 0; fi; done; exit 1"]
`

// seedService is one of the Services that the Pod waits for.
func seedService(name, port string) string {
	return fmt.Sprintf(
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{protocol: TCP, port: 80, "+
			"targetPort: %s}]}\n", name, port)
}

// WaitsForNames starts a Pod whose init containers wait for Services by name, and gets on as these are made. One that
// looks a few times for what never comes fails.
//
// POD-193 POD-213
func WaitsForNames(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(seedPod, "apply", "-f", "-")
	never := job("never", "for i in $(seq 1 2); do sleep 1; if nslookup nosuchservice; then exit 0; fi; done; exit 1",
		"backoffLimit: 0")
	w.KubectlWith(never, "apply", "-f", "-")
	w.awaitOutput([]string{"waiting for myservice\nwaiting"}, "logs", "myapp-pod", "-c", "init-myservice")
	w.awaitOutput([]string{"Init:0/2"}, "get", "pod", "myapp-pod")
	w.KubectlWith(seedService("myservice", "9376"), "apply", "-f", "-")
	w.awaitOutput([]string{"Init:1/2"}, "get", "pod", "myapp-pod")
	w.KubectlWith(seedService("mydb", "9377"), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/myapp-pod", "--timeout=60s")
	w.Kubectl("wait", "--for=condition=Failed", "job/never", "--timeout=60s")
}
