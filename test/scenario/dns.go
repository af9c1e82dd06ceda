package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// DNSRecords looks every kind of name up that Services and Pods have: as the API of a cluster's DNS defines them, from
// a Pod of the same namespace, of another one, and from the last node.
//
// SET-044 SET-046
func DNSRecords(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(namedPods+fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {type: ExternalName, externalName: front.%s.svc.cluster.local}
`, w.Namespace), "apply", "-f", "-")
	w.traffic().startClients()
	beyond, nodes := In(t, m), m.Nodes()
	beyond.KubectlWith(client("beyond", nodes[len(nodes)-1], false), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=60s")
	w.Await("the unready Pod's address", func() Answer {
		if w.traffic().addresses("app=never")["late"] == "" {
			return "it has none"
		}
		return ""
	})
	for _, client := range []string{"in-pod-1", fmt.Sprint("on-node-", len(nodes))} {
		expectDNSRecords(w, w, client)
	}
	beyond.Kubectl("wait", "--for=condition=Ready", "pod/beyond", "--timeout=60s")
	expectDNSRecords(w, beyond, "beyond")
	beyond.traffic().awaitNoName("beyond", "front") // which is a name of the other namespace
	ips, domain := w.traffic().addresses("app=web"), w.Namespace+".svc.cluster.local"
	w.says("web-0.web."+domain, "exec", "web-0", "--", "hostname", "-f")
	expectDNSUpdates(w, ips["web-0"], domain)
}

// expectDNSRecords looks the names up from a client, which may be of another namespace: then the names say of which.
func expectDNSRecords(w *World, from *World, client string) {
	w.Helper()
	ips, late := w.traffic().addresses("app=web"), w.traffic().addresses("app=never")["late"]
	front := w.service("front").Spec.ClusterIP
	domain, short := w.Namespace+".svc.cluster.local", ""
	names := []string{"front." + w.Namespace, "front." + w.Namespace + ".svc", "front." + domain + "."}
	if from == w {
		names = append(names, "front")
	} else {
		short = "." + w.Namespace
	}
	for _, name := range names {
		from.traffic().awaitLookup(client, "A", name, front)
	}
	from.traffic().awaitLookup(client, "A", "web"+short, slices.Collect(maps.Values(ips))...)
	from.traffic().awaitLookup(client, "A", "web-0.web"+short, ips["web-0"])
	from.traffic().awaitLookup(client, "A", "web-1.web."+domain+".", ips["web-1"])
	from.traffic().awaitLookup(client, "A", "lone.web"+short, ips["alone"])
	from.traffic().awaitNoName(client, "web-2.web."+domain+".")
	from.traffic().awaitLookup(client, "PTR", front, "front."+domain+".")
	from.traffic().awaitLookup(client, "PTR", late, "late.early."+domain+".")
	from.traffic().awaitLookup(client, "SRV", "_http._tcp.front."+domain+".", "front."+domain+".:80")
	from.traffic().awaitLookup(client, "SRV", "_http._tcp.web."+domain+".", "web-0.web."+domain+".:8080",
		"web-1.web."+domain+".:8080", "lone.web."+domain+".:8080")
	from.traffic().awaitLookup(client, "CNAME", "other."+domain+".", "front."+domain+".")
	from.traffic().awaitLookup(client, "A", "other"+short, front)
	from.traffic().awaitLookup(client, "A", "late.early"+short, late)
	from.traffic().awaitNoName(client, "strict"+short)
}

// expectDNSUpdates follows the name of a Pod that is replaced, and that of a Service that is deleted.
func expectDNSUpdates(w *World, before, domain string) {
	w.Helper()
	w.Kubectl("delete", "pod", "web-0")
	w.Kubectl("wait", "--for=condition=Ready", "pod/web-0", "--timeout=60s")
	after := w.traffic().addresses("app=web")["web-0"]
	if after == before {
		w.Logf("the new Pod has the address of the old one: %s", after)
	}
	w.traffic().awaitLookup("in-pod-1", "A", "web-0.web", after)
	w.Kubectl("delete", "service", "front")
	w.traffic().awaitNoName("in-pod-1", "front."+domain+".")
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

// InitContainersWaitForDNS starts a Pod whose init containers wait for Services by name, and gets on as these are made.
// One that looks a few times for what never comes fails.
//
// POD-193 POD-213
func InitContainersWaitForDNS(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(seedPod, "apply", "-f", "-")
	never := job("never", "for i in $(seq 1 2); do sleep 1; if nslookup nosuchservice; then exit 0; fi; done; exit 1",
		"backoffLimit: 0")
	w.KubectlWith(never, "apply", "-f", "-")
	w.Await("a second look for myservice", func() Answer {
		r := w.TryKubectl("", "logs", "myapp-pod", "-c", "init-myservice")
		if strings.Count(r.Stdout, "waiting for myservice\n") >= 2 {
			return ""
		}
		return Saw(r.Stdout + r.Stderr)
	})
	w.awaitOutput([]string{"Init:0/2"}, "get", "pod", "myapp-pod")
	w.KubectlWith(seedService("myservice", "9376"), "apply", "-f", "-")
	w.awaitOutput([]string{"Init:1/2"}, "get", "pod", "myapp-pod")
	w.KubectlWith(seedService("mydb", "9377"), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/myapp-pod", "--timeout=60s")
	w.Kubectl("wait", "--for=condition=Failed", "job/never", "--timeout=60s")
}
