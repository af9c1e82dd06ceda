package horizontalpodautoscaler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/write"
)

// server is an apiserver with one scale and the metrics that a test gives it. It records the requests.
type server struct {
	mu       sync.Mutex // guards all below
	scale    *autoscalingv1.Scale
	conflict bool
	answers  map[string]any // by path
	asked    []string
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	answer, code := s.answers[r.URL.Path], http.StatusOK
	switch {
	case strings.HasSuffix(r.URL.Path, "/web/scale") && r.Method == http.MethodPut:
		sent := &autoscalingv1.Scale{}
		if err := json.NewDecoder(r.Body).Decode(sent); err != nil || s.conflict ||
			sent.ResourceVersion != s.scale.ResourceVersion {
			code, answer = http.StatusConflict, &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonConflict,
				Code: http.StatusConflict}
			break
		}
		sent.ResourceVersion += "1"
		s.scale, answer = sent, sent
	case strings.HasSuffix(r.URL.Path, "/web/scale"):
		answer = s.scale
	case answer == nil:
		code, answer = http.StatusNotFound, &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound,
			Message: "the server could not find the requested resource", Code: http.StatusNotFound}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// take returns the requests since the last call.
func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// journal keeps events.
type journal struct{ list []string }

// Record implements recorder.
func (j *journal) Record(object runtime.Object, e events.Event) {
	j.list = append(j.list, object.(client.Object).GetName()+": "+e.Reason)
}

// world is a controller with the test's server.
type world struct {
	*Controller
	server  *server
	journal *journal
	clock   time.Time
	store   client.Client
}

func newWorld(t *testing.T, replicas int32, autoscalers ...*autoscalingv2.HorizontalPodAutoscaler) *world {
	t.Helper()
	const typed = "autoscaling/v1"
	s := &server{answers: map[string]any{}, scale: &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: typed, Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", ResourceVersion: "1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: replicas, Selector: "app=web"}}}
	s.answers["/apis/apps/v1"] = &metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
		{Name: "replicasets/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true}}}
	s.answers["/api"] = &metav1.APIVersions{Versions: []string{"v1"}}
	s.answers["/apis"] = &metav1.APIGroupList{}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}, {Version: "v1"}})
	for _, kind := range []string{"Deployment", "ReplicaSet"} {
		mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Pod", "Service"} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	found, sources, err := connect(&rest.Config{Host: listening.URL}, mapper)
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for _, a := range autoscalers {
		builder = builder.WithObjects(a).WithStatusSubresource(a)
	}
	w := &world{server: s, journal: &journal{}, clock: now, store: builder.Build()}
	index := podset.NewIndex()
	for i := range replicas {
		index.Upsert(pod(fmt.Sprintf("web-%02d", i)))
	}
	w.Controller = &Controller{client: w.store, writer: &write.Writer{Client: w.store, Kind: "horizontalpodautoscaler"},
		pods: index, selected: podset.NewSelections(index), scales: found, sources: sources, recorder: w.journal,
		settings: DefaultSettings(), now: func() time.Time { return w.clock },
		histories: map[types.NamespacedName]known{}}
	return w
}

// use sets the usage of all Pods.
func (w *world) use(pods int, cpu string) {
	list := &metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1",
		Kind: "PodMetricsList"}}
	for i := range pods {
		item := metricsv1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("web-%02d",
			i)},
			Timestamp: metav1.NewTime(w.clock), Window: metav1.Duration{Duration: 15 * time.Second}}
		item.Containers = []metricsv1beta1.ContainerMetrics{{Name: "main"}}
		item.Containers[0].Usage = corev1.ResourceList{"cpu": *amount(cpu)}
		list.Items = append(list.Items, item)
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.answers["/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"] = list
}

// pass makes one pass and returns the autoscaler after it.
func (w *world) pass(t *testing.T, name string) (*autoscalingv2.HorizontalPodAutoscaler, reconcile.Result) {
	t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: name}
	result, err := w.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	a := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := w.store.Get(t.Context(), key, a); err != nil {
		t.Fatal(err)
	}
	return a, result
}

func autoscaler(name string, change ...func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.
	HorizontalPodAutoscaler {
	a := input().Autoscaler.DeepCopy()
	a.Name, a.UID = name, types.UID(name)
	for _, c := range change {
		c(a)
	}
	return a
}

// DEP-185, DEP-186, DEP-210, DEP-211: the controller writes the scale with one metrics request per period, and
// writes nothing once it fits.
func TestScaling(t *testing.T) {
	w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
		a.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "ReplicaSet", Name: "web"}
		// Two metrics of the Pods' resources, one request.
		a.Spec.Metrics = append(a.Spec.Metrics, autoscalingv2.MetricSpec{Type: "ContainerResource",
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Container: "main",
				Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("80m")}}})
	}))
	w.use(2, "80m")
	a, result := w.pass(t, "a")
	const scale = "/apis/apps/v1/namespaces/ns/replicasets/web/scale"
	const metrics = "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb"
	want := []string{"GET " + scale, metrics, "GET /apis/apps/v1?timeout=32s", "PUT " + scale +
		"?fieldManager=horizontalpodautoscaler"}
	if got := w.server.take(); !slices.Equal(got, want) {
		t.Errorf("asked %q", got)
	}
	if w.server.scale.Spec.Replicas != 4 || a.Status.DesiredReplicas != 4 || a.Status.CurrentReplicas != 2 ||
		a.Status.LastScaleTime == nil || result.RequeueAfter != 15*time.Second {
		t.Errorf("DEP-211: %d replicas, %+v, again in %v", w.server.scale.Spec.Replicas, a.Status, result.RequeueAfter)
	}
	if !slices.Equal(w.journal.list, []string{"a: SuccessfulRescale"}) {
		t.Errorf("events %q", w.journal.list)
	}
	w.use(2, "50m")
	w.server.scale.Spec.Replicas, w.server.scale.Status.Replicas = 2, 2
	w.clock = w.clock.Add(10 * time.Minute)
	w.pass(t, "a")
	w.server.take()
	version := func() string { a, _ := w.pass(t, "a"); return a.ResourceVersion }
	if first, second := version(), version(); first != second {
		t.Error("a pass that changes nothing writes the status")
	}
	if got, want := w.server.take(), []string{"GET " + scale, metrics, "GET " + scale, metrics}; !slices.Equal(got,
		want) {
		t.Errorf("two settled passes asked %q", got)
	}
}

// DEP-212: without a source of metrics the controller changes nothing, and the condition says so.
func TestWithoutMetrics(t *testing.T) {
	name := autoscalingv2.MetricIdentifier{Name: "hits"}
	target := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("1")}
	for _, row := range []struct {
		metric autoscalingv2.MetricSpec
		want   string
	}{
		{cpu(50),
			"failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from " +
				"resource metrics API: the server could not find the requested resource"},
		{autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name, Target: target}},
			"failed to get pods metric value: unable to get metric hits: unable to fetch metrics from custom metrics " +
				"API: no custom metrics API (custom.metrics.k8s.io) registered"},
		{autoscalingv2.MetricSpec{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name,
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "web"},
			Target:          target}},
			"failed to get object metric value: unable to get metric hits: Service on ns web: unable to fetch " +
				"metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"},
		{autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: name,
			Target: target}},
			"failed to get hits external metric value: unable to get external metric ns/hits/<none>: unable to fetch " +
				"metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered, or " +
				"it does not know the metric"},
	} {
		t.Run(string(row.metric.Type), func(t *testing.T) {
			w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
				a.Spec.Metrics = []autoscalingv2.MetricSpec{row.metric}
			}))
			a, result := w.pass(t, "a")
			want := "False FailedGet" + string(row.metric.Type) +
				"Metric the HPA was unable to compute the replica count: " + row.want
			if got := said(a.Status, "ScalingActive"); !strings.HasPrefix(got, want) {
				t.Errorf("%s", got)
			}
			if w.server.scale.Spec.Replicas != 2 || result.RequeueAfter != 15*time.Second {
				t.Errorf("%d replicas, again in %v", w.server.scale.Spec.Replicas, result.RequeueAfter)
			}
			if w.pass(t, "a"); len(w.journal.list) != 2 {
				t.Errorf("told %q in two passes", w.journal.list)
			}
		})
	}
}

// Metrics of other APIs, as their server answers.
func TestOtherAPIs(t *testing.T) {
	const custom = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/"
	each := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("10")}
	name := autoscalingv2.MetricIdentifier{Name: "hits", Selector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"verb": "GET"}}}
	value := func(kind, object, value string) map[string]any {
		return map[string]any{"describedObject": map[string]any{"kind": kind, "namespace": "ns", "name": object,
			"apiVersion": "/v1"}, "metric": map[string]any{"name": "hits"}, "timestamp": "2026-01-01T00:00:00Z",
			"value": value}
	}
	list := func(items ...map[string]any) map[string]any {
		return map[string]any{"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": items}
	}
	for _, row := range []struct {
		name   string
		metric autoscalingv2.MetricSpec
		path   string
		answer any
		query  string
	}{
		{"pods", autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name,
			Target: each}},
			custom + "pods/*/hits", list(value("Pod", "web-00", "20"), value("Pod", "web-01", "20")),
			"?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET"},
		{"object", autoscalingv2.MetricSpec{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name,
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "web"},
			Target:          each}},
			custom + "services/web/hits", list(value("Service", "web", "40")), "?metricLabelSelector=verb%3DGET"},
		{"external", autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{
			Metric: name, Target: each}}, "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/hits",
			map[string]any{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
				"items": []any{map[string]any{"metricName": "hits", "value": "15", "timestamp": "2026-01-01T00:00:00Z"},
					map[string]any{"metricName": "hits", "value": "25", "timestamp": "2026-01-01T00:00:00Z"}}},
			"?labelSelector=verb%3DGET"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
				a.Spec.Metrics = []autoscalingv2.MetricSpec{row.metric}
			}))
			served := metav1.GroupVersionForDiscovery{GroupVersion: "custom.metrics.k8s.io/v1beta2", Version: "v1beta2"}
			w.server.answers["/apis"] = &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "custom.metrics.k8s.io",
				Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}}}
			w.server.answers[row.path] = row.answer
			a, _ := w.pass(t, "a")
			if w.server.scale.Spec.Replicas != 4 {
				t.Errorf("%d replicas: %s", w.server.scale.Spec.Replicas, said(a.Status, "ScalingActive"))
			}
			if asked := w.server.take(); !slices.Contains(asked, "GET "+strings.ReplaceAll(row.path, "*",
				"%2A")+row.query) {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// The autoscaler stores that it takes the last replicas away before it does so; if the controller dies in between,
// its successor knows when to bring them back.
func TestZeroIsSaidFirst(t *testing.T) {
	w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
		*a.Spec.MinReplicas = 0
		a.Spec.Metrics = []autoscalingv2.MetricSpec{queue(autoscalingv2.MetricTarget{Type: "AverageValue",
			AverageValue: amount("10")})}
	}))
	w.settings.DownscaleStabilization = 0
	queued := func(length string) {
		w.server.answers["/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue"] = map[string]any{
			"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
			"items": []any{map[string]any{"metricName": "queue", "value": length, "timestamp": "2026-01-01T00:00:00Z"}}}
	}
	expect := func(when string, replicas int32, status corev1.ConditionStatus, again time.Duration) {
		t.Helper()
		a, result := w.pass(t, "a")
		c := kind.Find(a.Status.Conditions, autoscalingv2.ScaledToZero)
		if w.server.scale.Spec.Replicas != replicas || c == nil || c.Status != status || result.RequeueAfter != again {
			t.Errorf("%s: %d replicas, %+v, again after %v", when, w.server.scale.Spec.Replicas, c, result.RequeueAfter)
		}
		w.server.scale.Status.Replicas = w.server.scale.Spec.Replicas
		w.clock = w.clock.Add(time.Minute)
	}
	queued("20")
	expect("a queue for two", 2, corev1.ConditionFalse, 15*time.Second)
	queued("0")
	expect("an empty queue", 2, corev1.ConditionTrue, time.Second)
	expect("the next pass", 0, corev1.ConditionTrue, 15*time.Second)
	// Another controller starts without history.
	w.histories = map[types.NamespacedName]known{}
	expect("another controller", 0, corev1.ConditionTrue, 15*time.Second)
	queued("11")
	expect("a queue again", 2, corev1.ConditionFalse, 15*time.Second)
	w.server.scale.Spec.Replicas = 0
	expect("somebody else's zero", 0, corev1.ConditionFalse, 15*time.Second)
}

// Two autoscalers of the same Pods are both refused, until one is gone.
func TestRivals(t *testing.T) {
	w := newWorld(t, 2, autoscaler("a"), autoscaler("b"))
	w.use(2, "100m")
	w.server.scale.Spec.Replicas = 2
	a, _ := w.pass(t, "a")
	if w.server.scale.Spec.Replicas != 4 {
		t.Errorf("alone: %s", said(a.Status, "ScalingActive"))
	}
	w.server.scale.Spec.Replicas = 2
	for _, name := range []string{"b", "a"} {
		got, _ := w.pass(t, name)
		if said(got.Status, "ScalingActive") != "False AmbiguousSelector pods by selector app=web are controlled by "+
			"multiple HPAs: [ns/a ns/b]" || w.server.scale.Spec.Replicas != 2 {
			t.Errorf("%s: %s", name, said(got.Status, "ScalingActive"))
		}
	}
	w.forget(a)
	if w.pass(t, "b"); w.server.scale.Spec.Replicas != 4 {
		t.Error("the other is gone and it still waits")
	}
}

// A scale that another client wrote first is read again soon, and does not count as a change.
func TestConflict(t *testing.T) {
	w := newWorld(t, 2, autoscaler("a"))
	w.use(2, "100m")
	w.server.conflict = true
	a, result := w.pass(t, "a")
	if result.RequeueAfter != time.Second || len(a.Status.Conditions) != 0 || len(w.journal.list) != 0 ||
		len(w.history(a).Changes) != 0 {
		t.Errorf("again in %v, %+v, %q, %+v", result.RequeueAfter, a.Status, w.journal.list, w.history(a))
	}
	w.server.conflict = false
	if w.pass(t, "a"); w.server.scale.Spec.Replicas != 4 {
		t.Errorf("%d replicas", w.server.scale.Spec.Replicas)
	}
	if got := w.history(a).Changes; !slices.Equal(got, []Change{{2, now}}) {
		t.Errorf("remembered %+v", got)
	}
	if got := w.history(autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) { a.UID = "other" })); len(
		got.Changes) != 0 {
		t.Errorf("another of its name has the history %+v", got)
	}
	if w.forget(a); len(w.histories) != 0 {
		t.Error("what is gone is remembered")
	}
}

// Targets that are not there, of kinds that do not exist, or that another is being deleted from.
func TestTargets(t *testing.T) {
	for _, row := range []struct {
		name string
		ref  autoscalingv2.CrossVersionObjectReference
		want string
	}{
		{"no such object", autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
			Name: "none"}, "the server could not find the requested resource"},
		{"no such kind", autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Foo",
			Name: "web"},
			`unable to determine resource for scale target reference: no matches for kind "Foo" in group "example.com"`},
		{"DEP-186 a kind that is not known without its group", autoscalingv2.CrossVersionObjectReference{Kind: "Foo",
			Name: "web"}, "unable to determine resource for scale target reference: no matches for "},
		{"no version", autoscalingv2.CrossVersionObjectReference{APIVersion: "a/b/c", Kind: "Foo", Name: "web"},
			"invalid API version in scale target reference: unexpected GroupVersion string: a/b/c"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
				a.Spec.ScaleTargetRef = row.ref
			}))
			a, _ := w.pass(t, "a")
			if got := said(a.Status, "AbleToScale"); !strings.HasPrefix(got,
				"False FailedGetScale the HPA controller was "+
					"unable to get the target's current scale: "+row.want) {
				t.Errorf("%s", got)
			}
		})
	}
	w := newWorld(t, 2, autoscaler("a", func(a *autoscalingv2.HorizontalPodAutoscaler) {
		a.DeletionTimestamp, a.Finalizers = ptr.To(metav1.NewTime(now)), []string{"example.com/hold"}
	}))
	if w.pass(t, "a"); len(w.server.take()) != 0 {
		t.Error("one that is being deleted scales")
	}
}
