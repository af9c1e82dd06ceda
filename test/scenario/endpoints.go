package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
)

// endpointSlices reads what the EndpointSlices of a world's Services say.
type endpointSlices struct{ *World }

func (w *World) endpoints() endpointSlices { return endpointSlices{w} }

// of returns the endpoints of a Service's slices, those of ready, serving and terminating Pods marked by R, S
// and T.
func (w endpointSlices) of(service string) map[string]string {
	w.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices(w.Namespace).List(w.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		w.Fatalf("listing the slices of %s: %v", service, err)
	}
	all := map[string]string{}
	for _, slice := range list.Items {
		for i := range slice.Endpoints {
			name, marks := endpointOf(&slice.Endpoints[i])
			all[name] = marks
		}
	}
	return all
}

// endpointOf returns the name of an endpoint's Pod, or else its address, and its marks.
func endpointOf(e *discoveryv1.Endpoint) (name, marks string) {
	for i, holds := range []*bool{e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating} {
		if holds != nil && *holds {
			marks += "RST"[i : i+1]
		}
	}
	if e.TargetRef != nil {
		return e.TargetRef.Name, marks
	}
	return strings.Join(e.Addresses, "+"), marks
}

// await waits until the slices of a Service show these endpoints and no others.
func (w endpointSlices) await(service string, want map[string]string) {
	w.Helper()
	w.Await("the endpoints of "+service, func() Answer {
		if got := w.of(service); fmt.Sprint(got) != fmt.Sprint(want) {
			return Sawf("%v, not %v", got, want)
		}
		return ""
	})
}

// awaitReady waits until just the active Pods of a selector are the endpoints of a Service, all of them ready.
func (w endpointSlices) awaitReady(service, selector string, count int) {
	w.Helper()
	w.Await(fmt.Sprintf("%d Pods of %s behind %s", count, selector, service), func() Answer {
		want := map[string]string{}
		for _, pod := range w.Pods(selector) {
			if podview.IsActive(&pod) {
				want[pod.Name] = "RS"
			}
		}
		if got := w.of(service); len(want) != count || fmt.Sprint(got) != fmt.Sprint(want) {
			return Sawf("%v, not %v", got, want)
		}
		return ""
	})
}

// watch looks at every state of a Service's slices until stop is called, which fails the test for each state
// without a ready endpoint and for endpoints that are ready and terminating at once.
func (w endpointSlices) watch(service string) (stop func()) {
	w.Helper()
	slices := w.Client.DiscoveryV1().EndpointSlices(w.Namespace)
	options := metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service}
	list, err := slices.List(w.Context(), options)
	if err != nil {
		w.Fatalf("listing the slices of %s: %v", service, err)
	}
	options.ResourceVersion = list.ResourceVersion
	watching, err := slices.Watch(w.Context(), options)
	if err != nil {
		w.Fatalf("watching the slices of %s: %v", service, err)
	}
	now, states := map[string]*discoveryv1.EndpointSlice{}, 0
	for i := range list.Items {
		now[list.Items[i].Name] = &list.Items[i]
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for event := range watching.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				select {
				case <-stopped:
				default:
					w.Errorf("the watch ended: %v", event.Object)
				}
				return
			}
			if now[slice.Name] = slice; event.Type == watch.Deleted {
				delete(now, slice.Name)
			}
			states++
			expectReadyEndpoint(w.World, now)
		}
	}()
	return func() {
		close(stopped)
		watching.Stop()
		<-done
		if states < 2 {
			w.Errorf("the slices of %s had %d states", service, states)
		}
	}
}

// expectReadyEndpoint fails the test when no endpoint of the slices is ready, or one that is terminating.
func expectReadyEndpoint(w *World, slices map[string]*discoveryv1.EndpointSlice) {
	ready := 0
	for _, slice := range slices {
		for i := range slice.Endpoints {
			name, marks := endpointOf(&slice.Endpoints[i])
			if strings.Contains(marks, "R") {
				ready++
			}
			if strings.Contains(marks, "R") && strings.Contains(marks, "T") {
				w.Errorf("%s is ready and terminating", name)
			}
		}
	}
	if ready == 0 {
		w.Errorf("the Service has no ready endpoint")
	}
}

// EndpointsDuringRollout updates a Deployment behind a Service, and then moves the Service's clients to
// ReplicationControllers that come and go: the slices name just the Pods that there are, and one that is ready at any
// time.
//
// POD-144 POD-160 POD-163 DEP-206
func EndpointsDuringRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(service, "apply", "-f", "-")
	w.endpoints().await("web-svc", map[string]string{})
	w.KubectlWith(web(4, HelloV1, ""), "apply", "-f", "-")
	w.endpoints().awaitReady("web-svc", "app=web", 4)
	stop := w.endpoints().watch("web-svc")
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 4)
	w.endpoints().awaitReady("web-svc", "app=web", 4)
	w.Kubectl("scale", "deployment/web", "--replicas=2")
	w.endpoints().awaitReady("web-svc", "app=web", 2)
	stop()

	w.KubectlWith(strings.NewReplacer("web-svc", "nginx-svc", "app: web", "app: nginx").Replace(service), "apply", "-f",
		"-")
	w.KubectlWith(nginx("one", "a", HelloV1, 2), "apply", "-f", "-")
	w.endpoints().awaitReady("nginx-svc", "app=nginx", 2)
	stop = w.endpoints().watch("nginx-svc")
	w.KubectlWith(nginx("two", "b", HelloV2, 2), "apply", "-f", "-")
	w.endpoints().awaitReady("nginx-svc", "app=nginx", 4)
	w.Kubectl("delete", "rc", "one")
	w.endpoints().awaitReady("nginx-svc", "app=nginx,track=b", 2)
	stop()
}

// played is a Pod on a node that the test plays: no agent reports its status.
const played = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: played}}
spec:
  nodeName: %[2]s
  hostname: first
  subdomain: played
  initContainers: [{name: setup, image: x, ports: [{name: admin, containerPort: 9000}]}]
  containers: [{name: main, image: x, ports: [{name: web, containerPort: 8080}]}]
`

// ServiceEndpoints takes a Pod through its life behind a headless Service, as its node would: what the slices and the
// Endpoints say follows each step, nothing else is written, and kubectl shows it.
//
// POD-141 POD-144 POD-145 POD-160 POD-162 POD-163 POD-202
func ServiceEndpoints(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	node := "node-of-" + w.Namespace
	if _, err := w.Client.CoreV1().Nodes().Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node,
		Labels: map[string]string{corev1.LabelTopologyZone: "z"}}, Spec: corev1.NodeSpec{Unschedulable: true}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer w.Kubectl("delete", "node", node)
	w.KubectlWith(`apiVersion: v1
kind: Service
metadata: {name: played}
spec:
  clusterIP: None
  selector: {app: played}
  ports: [{name: web, port: 80, targetPort: web}, {name: admin, port: 90, targetPort: admin}]
`, "apply", "-f", "-")
	w.KubectlWith(fmt.Sprintf(played, "pod", node), "apply", "-f", "-")
	says := func(ready string) {
		patchStatus(w,
			"pod",
			fmt.Sprintf(`{"status":{"phase":"Running","podIP":"10.77.0.1","podIPs":[{"ip":"10.77.0.1"}],
"conditions":[{"type":"Ready","status":%q}]}}`, ready),
		)
	}
	says("False")
	w.endpoints().await("played", map[string]string{"pod": ""})
	awaitLegacyEndpoints(w, "played", "not 10.77.0.1:8080")
	says("True")
	w.endpoints().await("played", map[string]string{"pod": "RS"})
	awaitLegacyEndpoints(w, "played", "10.77.0.1:8080")
	w.awaitOutput([]string{"10.77.0.1:8080"}, "describe", "service", "played")
	w.awaitOutput([]string{"8080", "10.77.0.1"}, "get", "endpointslices", "-l", "kubernetes.io/service-name=played")
	shown := w.awaitOutput([]string{"AddressType:  IPv4", "Ready:    true", "Hostname:   first", "Pod/pod", node},
		"describe", "endpointslices", "-l", "kubernetes.io/service-name=played")
	if strings.Contains(shown, "9000") {
		t.Errorf("the port of an init container is shown:\n%s", shown)
	}
	says("False")
	w.endpoints().await("played", map[string]string{"pod": ""})
	awaitLegacyEndpoints(w, "played", "not 10.77.0.1:8080")
	says("True")
	w.endpoints().await("played", map[string]string{"pod": "RS"})
	awaitLegacyEndpoints(w, "played", "10.77.0.1:8080")

	before := endpointVersions(w)
	w.Kubectl("annotate", "pod", "pod", "of=no-interest")
	w.KubectlWith(strings.ReplaceAll(service, "app: web", "app: none"), "apply", "-f", "-")
	w.awaitOutput([]string{"web-svc"}, "get", "endpointslices,endpoints")
	for name, version := range endpointVersions(w) {
		if had, known := before[name]; known && had != version {
			t.Errorf("%s was written from %s to %s though nothing has changed", name, had, version)
		}
	}

	w.Kubectl("delete", "pod", "pod", "--grace-period=300", "--wait=false")
	w.endpoints().await("played", map[string]string{"pod": "ST"})
	awaitLegacyEndpoints(w, "played", "not 10.77.0.1:8080")
	says("False")
	w.endpoints().await("played", map[string]string{"pod": "T"})
	w.Kubectl("delete", "pod", "pod", "--grace-period=0", "--force")
	w.endpoints().await("played", map[string]string{})
	awaitLegacyEndpoints(w, "played", "")
	w.Kubectl("delete", "service", "played")
	w.Await("nothing left of the Service", func() Answer {
		if left := w.Kubectl("get", "endpointslices,endpoints", "--output=name"); strings.Contains(left, "/played") {
			return Saw(left)
		}
		return ""
	})
}

// endpointVersions are the resource versions of all slices and Endpoints.
func endpointVersions(w *World) map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, line := range strings.Split(w.Kubectl("get", "endpointslices,endpoints",
		`--output=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`), "\n") {
		if name, version, found := strings.Cut(line, " "); found {
			all[name] = version
		}
	}
	return all
}

// awaitLegacyEndpoints waits until the Endpoints of a Service have these addresses; "not" stands before those that are
// not ready.
func awaitLegacyEndpoints(w *World, service, want string) {
	w.Helper()
	w.Await("the Endpoints of "+service, func() Answer {
		endpoints, err := w.Client.CoreV1().Endpoints(w.Namespace).Get(w.Context(), service, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		var all []string
		for _, subset := range endpoints.Subsets {
			for _, port := range subset.Ports {
				for _, address := range subset.Addresses {
					all = append(all, fmt.Sprintf("%s:%d", address.IP, port.Port))
				}
				for _, address := range subset.NotReadyAddresses {
					all = append(all, fmt.Sprintf("not %s:%d", address.IP, port.Port))
				}
			}
		}
		slices.Sort(all)
		if got := strings.Join(all, " "); got != want {
			return Sawf("%q, not %q", got, want)
		}
		return ""
	})
}

// EndpointsMirrored writes Endpoints by hand for a Service without a selector: slices mirror them until they, or the
// Service, are gone.
func EndpointsMirrored(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(`apiVersion: v1
kind: Service
metadata: {name: db}
spec: {ports: [{port: 5432}]}
`, "apply", "-f", "-")
	w.KubectlWith(`apiVersion: v1
kind: Endpoints
metadata: {name: db, labels: {team: a}}
subsets: [{addresses: [{ip: 192.0.2.1}], notReadyAddresses: [{ip: 192.0.2.2}], ports: [{port: 5432}]}]
`, "apply", "-f", "-")
	w.endpoints().await("db", map[string]string{"192.0.2.1": "R", "192.0.2.2": ""})
	w.says("a", "get", "endpointslices", "-l",
		"endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io",
		"--output=jsonpath={.items[*].metadata.labels.team}")
	w.Kubectl("patch", "endpoints", "db", "--type=json", "-p",
		`[{"op":"remove","path":"/subsets/0/notReadyAddresses"}]`)
	w.endpoints().await("db", map[string]string{"192.0.2.1": "R"})
	w.Kubectl("label", "endpoints", "db", "endpointslice.kubernetes.io/skip-mirror=true")
	w.endpoints().await("db", map[string]string{})
	w.Kubectl("label", "endpoints", "db", "endpointslice.kubernetes.io/skip-mirror-")
	w.endpoints().await("db", map[string]string{"192.0.2.1": "R"})
	w.Kubectl("delete", "service", "db")
	w.Await("nothing left of the Service", func() Answer {
		return Left(w.Kubectl("get", "endpointslices,endpoints", "--output=name"))
	})
}

// ServiceForDaemonSet puts a headless and an ordinary Service before the Pods of a DaemonSet: all of them are behind
// both.
//
// SET-150
func ServiceForDaemonSet(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(agent("agent", HelloV1, ""), "apply", "-f", "-")
	for _, name := range []string{"headless", "ordinary"} {
		manifest := strings.NewReplacer("web-svc", name, "app: web", "name: agent").Replace(service)
		if name == "headless" {
			manifest = strings.Replace(manifest, "type: LoadBalancer", "clusterIP: None", 1)
		}
		w.KubectlWith(manifest, "apply", "-f", "-")
		w.endpoints().awaitReady(name, "name=agent", len(m.Nodes()))
		headless := w.Kubectl("get", "endpointslices", "--output=name", "-l",
			"kubernetes.io/service-name="+name+",service.kubernetes.io/headless")
		if (headless != "") != (name == "headless") {
			t.Errorf("slices of %s that are labelled headless: %q", name, headless)
		}
	}
}
