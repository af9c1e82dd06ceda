package servertest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// DEP-036: columns come from the server, on a list and on a watch.
func testTables(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "tables"))
	create(t, client, configMap("a", map[string]string{"k": "v"}))
	request := func(watch string) *metav1.Table {
		raw, err := s.Client.CoreV1().RESTClient().Get().Namespace("tables").Resource("configmaps").
			Param("watch", watch).Param("timeoutSeconds", "1").SetHeader("Accept", tableAccept).Do(t.Context()).Raw()
		if err != nil {
			t.Fatalf("reading a table: %v", err)
		}
		if watch == "true" {
			var event struct{ Object json.RawMessage }
			if err := json.Unmarshal([]byte(strings.SplitN(string(raw), "\n", 2)[0]), &event); err != nil {
				t.Fatalf("reading an event from %q: %v", raw, err)
			}
			raw = event.Object
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(raw, table); err != nil {
			t.Fatalf("reading a table from %q: %v", raw, err)
		}
		return table
	}
	for _, watch := range []string{"false", "true"} {
		table := request(watch)
		if table.Kind != "Table" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "a" ||
			table.Rows[0].Cells[1] != float64(1) {
			t.Errorf("watch=%s: %+v", watch, table)
		}
		if len(table.ColumnDefinitions) != 3 || table.ColumnDefinitions[1].Name != "Data" {
			t.Errorf("watch=%s: columns %+v", watch, table.ColumnDefinitions)
		}
	}
}

// DEP-002, DEP-003: what the server serves, with its verbs and other names.
func testDiscovery(t *testing.T, s *servertest.Server) {
	_, lists, err := s.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatalf("discovering: %v", err)
	}
	found := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			found[list.GroupVersion+"/"+r.Name] = r
		}
	}
	all := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	rows := []struct {
		path, singular, short string
		namespaced            bool
		verbs                 []string
	}{
		{"v1/pods", "pod", "po", true, all},
		{"v1/configmaps", "configmap", "cm", true, all},
		{"v1/nodes", "node", "no", false, all},
		{"v1/pods/status", "pod", "", true, []string{"get", "patch", "update"}},
		{"v1/pods/binding", "pod", "", true, []string{"create"}},
		{"v1/pods/eviction", "pod", "", true, []string{"create"}},
		{"v1/serviceaccounts/token", "serviceaccount", "", true, []string{"create"}},
		{"apps/v1/deployments", "deployment", "deploy", true, all},
		{"apps/v1/replicasets", "replicaset", "rs", true, all},
		{"apps/v1/deployments/scale", "deployment", "", true, []string{"get", "patch", "update"}},
		{"apps/v1/deployments/status", "deployment", "", true, []string{"get", "patch", "update"}},
		{"coordination.k8s.io/v1/leases", "lease", "", true, all},
		{"events.k8s.io/v1/events", "event", "ev", true, all},
		{"rbac.authorization.k8s.io/v1/clusterroles", "clusterrole", "", false, all},
		{"scheduling.k8s.io/v1/priorityclasses", "priorityclass", "pc", false, all},
		{"authentication.k8s.io/v1/tokenreviews", "tokenreview", "", false, []string{"create"}},
		{"authorization.k8s.io/v1/selfsubjectaccessreviews", "selfsubjectaccessreview", "", false, []string{"create"}},
	}
	for _, row := range rows {
		r, ok := found[row.path]
		switch {
		case !ok:
			t.Errorf("%s is not served", row.path)
		case r.SingularName != row.singular || r.Namespaced != row.namespaced || row.short != "" &&
			!slices.Contains(r.ShortNames, row.short):
			t.Errorf("%s: %+v", row.path, r)
		case strings.Join(slices.Sorted(slices.Values(r.Verbs)), " ") != strings.Join(row.verbs, " "):
			t.Errorf("%s: verbs %v, want %v", row.path, r.Verbs, row.verbs)
		}
	}
}

func testOpenAPI(t *testing.T, s *servertest.Server) {
	v2, err := s.Client.Discovery().OpenAPISchema()
	if err != nil {
		t.Fatalf("reading OpenAPI v2: %v", err)
	}
	definitions := map[string]bool{}
	for _, d := range v2.Definitions.AdditionalProperties {
		definitions[d.Name] = true
	}
	for _, want := range []string{"io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment",
		"io.k8s.api.autoscaling.v1.Scale"} {
		if !definitions[want] {
			t.Errorf("OpenAPI v2 lacks %s", want)
		}
	}
	paths, err := s.Client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatalf("reading OpenAPI v3: %v", err)
	}
	for _, want := range []string{"api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1"} {
		if paths[want] == nil {
			t.Errorf("OpenAPI v3 lacks %s, has %v", want, paths)
			continue
		}
		schema, err := paths[want].Schema("application/json")
		if err != nil || !json.Valid(schema) {
			t.Errorf("OpenAPI v3 of %s: %d bytes, %v", want, len(schema), err)
		}
	}
}

// testEvents: core and events.k8s.io are two shapes of one object.
func testEvents(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "events")
	_, err := s.Client.CoreV1().Events(ns).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "a"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "p"},
		Reason:         "Tested", Message: "a note", Type: corev1.EventTypeNormal, Count: 3,
		Source: corev1.EventSource{Component: "test"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating: %v", err)
	}
	other, err := s.Client.EventsV1().Events(ns).Get(ctx, "a", metav1.GetOptions{})
	if err != nil || other.Regarding.Name != "p" || other.Note != "a note" || other.DeprecatedCount != 3 ||
		other.DeprecatedSource.Component != "test" {
		t.Errorf("in the other shape: %+v, %v", other, err)
	}
	for selector, want := range map[string]int{"regarding.name=p": 1, "regarding.name=q": 0, "reason=Tested": 1} {
		list, err := s.Client.EventsV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: %d events, %v, want %d", selector, len(list.Items), err, want)
		}
	}
	w, err := s.Client.EventsV1().Events(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer w.Stop()
	if _, event := next(t, w); event.Object.(*eventsv1.Event).Note != "a note" {
		t.Errorf("watched in the other shape: %+v", event.Object)
	}
}

// testSystemObjects: what a mesh cannot start without is there when the server is ready.
func testSystemObjects(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := s.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("namespace %s: %v", name, err)
		}
	}
	// SCH-008
	for name, value := range map[string]int32{"system-cluster-critical": 2000000000,
		"system-node-critical": 2000001000} {
		class, err := s.Client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
		if err != nil || class.Value != value {
			t.Errorf("priority class %s: %+v, %v", name, class, err)
		}
	}
	service, err := s.Client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "10.96.0.1" || service.Spec.Ports[0].Port != 443 {
		t.Errorf("the apiserver's Service: %+v, %v", service, err)
	}
	view, err := s.Client.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
	if err != nil || !slices.ContainsFunc(view.Rules, func(r ruleType) bool {
		return slices.Contains(r.Resources,
			"pods/log")
	}) {
		t.Errorf("the aggregated role view: %+v, %v", view, err)
	}
	if err := s.Client.AppsV1().RESTClient().Get().AbsPath("/apis/apps/v1").Do(ctx).Into(
		&metav1.APIResourceList{}); err != nil {
		t.Errorf("%s: %v", appsv1.SchemeGroupVersion, err)
	}
}
