package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// adapter is an API server from elsewhere that has three metrics: requests of Pods, hits of an object, and an outer
// queue. It has the objects of a test besides, and takes such as it is sent.
type adapter struct {
	w    *World
	port int

	mu                    sync.Mutex
	requests, hits, queue int
	objects               map[string]any // by path, below /apis/
}

// put makes what is read at a path.
func (a *adapter) put(path string, object any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = object
}

// load sets the metrics. requests are those of all Pods together.
func (a *adapter) load(requests, hits, queue int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests, a.hits, a.queue = requests, hits, queue
}

func startAdapter(w *World) *adapter {
	a := &adapter{w: w, objects: map[string]any{}}
	server := httptest.NewTLSServer(a)
	w.Cleanup(server.Close)
	a.port = server.Listener.Addr().(*net.TCPAddr).Port
	return a
}

// enter makes the adapter the server of group versions, until the test ends.
func (a *adapter) enter(versions ...string) {
	w := a.w
	manifest, names := adapterService, []string{}
	for _, groupVersion := range versions {
		group, version, _ := strings.Cut(groupVersion, "/")
		manifest += fmt.Sprintf(adapterAPI, group, version, w.Namespace)
		names = append(names, version+"."+group)
	}
	w.KubectlWith(manifest, "apply", "-f", "-")
	w.Cleanup(func() {
		for _, name := range names {
			err := w.Client.CoreV1().RESTClient().Delete().
				AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", name).Do(context.Background()).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				w.Errorf("deleting the APIService %s: %v", name, err)
			}
		}
	})
	w.KubectlWith(a.endpoint(), "apply", "-f", "-")
	for _, name := range names {
		w.Kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/"+name)
	}
}

func (a *adapter) endpoint() string { return fmt.Sprintf(adapterEndpoint, a.port) }

const (
	customVersion   = "custom.metrics.k8s.io/v1beta2"
	externalVersion = "external.metrics.k8s.io/v1beta1"
)

// ServeHTTP implements both APIs for the user that the front proxy's headers name.
func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// That the certificate is the front proxy's is a matter of the apiserver's own tests.
	if r.Header.Get("X-Remote-User") == "" {
		http.Error(w, "nobody", http.StatusUnauthorized)
		return
	}
	ask := a.answer
	if r.Method != http.MethodGet {
		ask = a.keep
	}
	answer, err := ask(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *adapter) answer(r *http.Request) (any, error) {
	a.mu.Lock()
	requests, hits, queue := a.requests, a.hits, a.queue
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	object := a.objects[path]
	a.mu.Unlock()
	inside := "/namespaces/" + a.w.Namespace
	switch path {
	case customVersion:
		return resources(path, "pods/requests", "services/hits"), nil
	case externalVersion:
		return resources(path, "queue"), nil
	case customVersion + inside + "/pods/*/requests":
		return a.ofPods(r, requests)
	case customVersion + inside + "/services/web/hits":
		return values(customVersion, "MetricValueList",
			described("Service", a.w.Namespace, "web", "hits", hits, 1)), nil
	case externalVersion + inside + "/queue":
		return values(externalVersion, "ExternalMetricValueList", map[string]any{"metricName": "queue",
			"metricLabels": map[string]string{}, "timestamp": metav1.Now(), "value": fmt.Sprint(queue)}), nil
	}
	return object, nil
}

// ofPods shares the requests out among the Pods.
func (a *adapter) ofPods(r *http.Request, requests int) (any, error) {
	pods, err := a.w.Client.CoreV1().Pods(a.w.Namespace).List(r.Context(),
		metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
	if err != nil {
		return nil, err
	}
	var items []any
	for i := range pods.Items {
		items = append(items, described("Pod", a.w.Namespace, pods.Items[i].Name, "requests", requests,
			len(pods.Items)))
	}
	return values(customVersion, "MetricValueList", items...), nil
}

func resources(version string, names ...string) any {
	var all []any
	for _, name := range names {
		all = append(all, map[string]any{"name": name, "namespaced": true, "kind": "MetricValueList",
			"verbs": []string{"get"}})
	}
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": all}
}

func values(version, kind string, items ...any) any {
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{}, "items": items}
}

// described is the part of an amount that falls to one of so many objects.
func described(kind, namespace, name, metric string, amount, parts int) any {
	return map[string]any{
		"describedObject": map[string]any{"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name},
		"metric":          map[string]any{"name": metric}, "timestamp": metav1.NewTime(time.Now()),
		"value": fmt.Sprintf("%dm", amount*1000/parts),
	}
}

// adapterService is the Service of the adapter, adapterAPI an APIService that it serves, adapterEndpoint its
// endpoint.
const (
	adapterService = `apiVersion: v1
kind: Service
metadata: {name: adapter}
spec: {ports: [{name: https, port: 443}]}
`
	adapterAPI = `---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[2]s.%[1]s}
spec: {group: %[1]s, version: %[2]s, groupPriorityMinimum: 100, versionPriority: 100,
  insecureSkipTLSVerify: true, service: {namespace: %[3]s, name: adapter}}
`
	adapterEndpoint = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: adapter, labels: {kubernetes.io/service-name: adapter}}
addressType: IPv4
ports: [{name: https, port: %d}]
endpoints: [{addresses: [` + mesh.ExtensionIP + `]}]
`
	// customScaler requests a Pod for each 10 of the adapter's metric.
	customScaler = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 8
  metrics:
  - {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 10}}}
  - type: Object
    object:
      metric: {name: hits}
      describedObject: {apiVersion: v1, kind: Service, name: web}
      target: {type: AverageValue, averageValue: 10}
  - {type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 10}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`
)

// HorizontalAutoscalingByCustomMetrics scales a Deployment by metrics of an API server from elsewhere: up by each kind
// of metric, not at all while that server is away, down after it came back, to zero and from there.
//
// DEP-185 DEP-210 DEP-211
func HorizontalAutoscalingByCustomMetrics(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	a := startAdapter(w)
	a.load(30, 10, 10)
	a.enter(customVersion, externalVersion)
	w.awaitOutput([]string{"queue", externalVersion}, "api-resources")
	w.KubectlWith(web(1, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 1)
	w.KubectlWith(customScaler, "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	a.load(10, 50, 10)
	w.AwaitAvailable("web", 5)
	a.load(10, 10, 70)
	w.AwaitAvailable("web", 7)

	w.Kubectl("delete", "endpointslice", "adapter")
	w.awaitOutput([]string{"v1beta2.custom.metrics.k8s.io", w.Namespace + "/adapter   False (EndpointsNotFound)"},
		"get", "apiservices")
	a.load(10, 10, 20) // not before no client can ask for it
	w.awaitOutput([]string{"ScalingActive", "False   FailedGet"}, "describe", "hpa", "web")
	if got := *w.deployment("web").Spec.Replicas; got != 7 {
		t.Errorf("without metrics the Deployment has %d replicas, want the 7 of before", got)
	}
	w.KubectlWith(a.endpoint(), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)

	// What is measured without Pods takes the last one away, and brings Pods back. What others switch off stays so.
	w.Kubectl("patch", "hpa", "web", "--type=merge", "--patch", `{"spec":{"minReplicas":0}}`)
	a.load(0, 0, 0)
	w.awaitOutput([]string{"ScaledToZero", "True    ScaledToZero", "0 current / 0 desired"}, "describe", "hpa", "web")
	a.load(0, 0, 20)
	w.AwaitAvailable("web", 2)
	w.Kubectl("scale", "deployment", "web", "--replicas=0")
	w.awaitOutput([]string{"False   ScalingDisabled", "False   NotScaledToZero"}, "describe", "hpa", "web")
}
