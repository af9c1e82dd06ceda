package scenario

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// echoing is a Deployment whose Pods answer with their names over TCP, UDP and SCTP, one on each of two nodes, with
// Services of every type in front.
const echoing = `apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports:
  - {name: http, port: 80, targetPort: http}
  - {name: udp, port: 80, protocol: UDP, targetPort: 8081}
  - {name: sctp, port: 80, protocol: SCTP, targetPort: 8082}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  selector: {app: echo}
  sessionAffinity: ClientIP
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: brief}
spec:
  selector: {app: echo}
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 2}}
  ports:
  - {name: a, port: 80, targetPort: 8080}
  - {name: b, port: 81, targetPort: 8080}
  - {name: c, port: 82, targetPort: 8080}
  - {name: d, port: 83, targetPort: 8080}
---
apiVersion: v1
kind: Service
metadata: {name: patient}
spec:
  selector: {app: echo}
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 15}}
  ports:
  - {name: a, port: 80, targetPort: 8080}
  - {name: b, port: 81, targetPort: 8080}
  - {name: c, port: 82, targetPort: 8080}
  - {name: d, port: 83, targetPort: 8080}
---
apiVersion: v1
kind: Service
metadata: {name: foreign, labels: {service.kubernetes.io/service-proxy-name: another}}
spec:
  selector: {app: echo}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: local}
spec:
  selector: {app: echo}
  internalTrafficPolicy: Local
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: near}
spec:
  selector: {app: echo}
  trafficDistribution: PreferSameNode
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: zone}
spec:
  selector: {app: echo}
  trafficDistribution: PreferSameZone
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: close}
spec:
  selector: {app: echo}
  trafficDistribution: PreferClose
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: ports}
spec:
  type: NodePort
  selector: {app: echo}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: udp, port: 81, protocol: UDP, targetPort: 8081}
  - {name: sctp, port: 82, protocol: SCTP, targetPort: 8082}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec:
  selector: {app: nobody}
  ports:
  - {name: http, port: 80}
  - {name: udp, port: 80, protocol: UDP}
  - {name: sctp, port: 80, protocol: SCTP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
        labelSelector: {matchLabels: {app: echo}}}
      containers:
      - name: main
        image: ` + Server + `
        args: ["-udp=:8081", "-sctp=8082"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// enough is how many requests reach each of two Pods, if each has an even chance: all but one in 2^39 times.
const enough = "40"

// echoes are the Pods of a Deployment that answer with their names, and who asks them.
type echoes struct {
	clients clients
	// pods are the Pods' addresses by their names, which names lists in order.
	pods  map[string]string
	names []string
	// ip is the address of the Service before them.
	ip string
	// family is the place of these addresses among those of a Pod or a Service.
	family int
}

// startEchoes waits until the Pods answer; their Services may not lead to them yet.
func (w serviceTraffic) startEchoes() echoes {
	w.Helper()
	w.KubectlWith(echoing, "apply", "-f", "-")
	e := echoes{clients: w.startClients()}
	w.AwaitAvailable("echo", 2)
	e.pods, e.ip = w.addresses("app=echo"), w.service("echo").Spec.ClusterIP
	e.names = slices.Sorted(maps.Keys(e.pods))
	return e
}

// secondFamily does the same with addresses of the second family, which some of the Services get for that.
func (w serviceTraffic) secondFamily(e echoes) echoes {
	w.Helper()
	for service, policy := range map[string]corev1.IPFamilyPolicy{
		"echo": corev1.IPFamilyPolicyRequireDualStack, "local": corev1.IPFamilyPolicyPreferDualStack,
		"empty": corev1.IPFamilyPolicyRequireDualStack, "ports": corev1.IPFamilyPolicyPreferDualStack,
	} {
		w.Kubectl("patch", "service", service, "-p", fmt.Sprintf(`{"spec":{"ipFamilyPolicy":%q}}`, policy))
	}
	e.family = 1
	e.pods, e.ip = w.familyAddresses("app=echo", e.family), w.service("echo").Spec.ClusterIPs[e.family]
	return e
}
