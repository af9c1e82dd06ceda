package resourcetest

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// pair is a Deployment of two containers, in a namespace of its own.
func pair(t *testing.T, s *servertest.Server, ns string) (typedappsv1.DeploymentInterface, *appsv1.Deployment) {
	t.Helper()
	deployments := s.Client.AppsV1().Deployments(s.Namespace(t, ns))
	d := servertest.Deployment("web")
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar",
		Image: "proxy:2"})
	return deployments, must[*appsv1.Deployment](t, "creating")(deployments.Create(t.Context(), d,
		metav1.CreateOptions{}))
}

func images(d *appsv1.Deployment) string {
	var all []string
	for _, c := range d.Spec.Template.Spec.Containers {
		all = append(all, c.Name+"="+c.Image)
	}
	return strings.Join(all, " ")
}

// The kinds of patch that kubectl set, edit, apply and patch send.
func testDeploymentPatches(t *testing.T, s *servertest.Server) {
	deployments, stored := pair(t, s, "patches")
	for _, row := range []struct {
		name  string
		kind  types.PatchType
		patch string
		want  func(*appsv1.Deployment) bool
	}{
		{"DEP-047: one container by name", types.StrategicMergePatchType,
			`{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:1.16.1"}]}}}}`,
			func(d *appsv1.Deployment) bool { return images(d) == "nginx=nginx:1.16.1 sidecar=proxy:2" }},
		{"DEP-247: JSON patch", types.JSONPatchType,
			`[{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"proxy:3"}]`,
			func(d *appsv1.Deployment) bool { return images(d) == "nginx=nginx:1.16.1 sidecar=proxy:3" }},
		{"DEP-233: one bound, the other stays", types.MergePatchType,
			`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"100%"}}}}`,
			func(d *appsv1.Deployment) bool {
				bounds := d.Spec.Strategy.RollingUpdate
				return bounds.MaxSurge.StrVal == "100%" && bounds.MaxUnavailable.StrVal == "25%"
			}},
		{"DEP-243: a field taken away gets its default", types.StrategicMergePatchType,
			`{"spec":{"replicas":null,"strategy":{"rollingUpdate":null}}}`,
			func(d *appsv1.Deployment) bool {
				return *d.Spec.Replicas == 1 && d.Spec.Strategy.RollingUpdate.MaxSurge.StrVal == "25%"
			}},
		{"DEP-247: merge patch replaces the list", types.MergePatchType,
			`{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"one"}]}}}}`,
			func(d *appsv1.Deployment) bool { return images(d) == "only=one" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := must[*appsv1.Deployment](t, "patching")(deployments.Patch(t.Context(), "web", row.kind,
				[]byte(row.patch), metav1.PatchOptions{}))
			if !row.want(d) {
				t.Errorf("got %s, %+v", images(d), d.Spec)
			}
		})
	}
	t.Run("DEP-242: what changes nothing leaves the version alone", func(t *testing.T) {
		before := must[*appsv1.Deployment](t, "reading")(deployments.Get(t.Context(), "web", metav1.GetOptions{}))
		after := must[*appsv1.Deployment](t, "writing")(deployments.Update(t.Context(), before.DeepCopy(),
			metav1.UpdateOptions{}))
		if before.ResourceVersion == stored.ResourceVersion || after.ResourceVersion != before.ResourceVersion ||
			after.Generation != before.Generation {
			t.Errorf("from %s (%d) to %s (%d)", before.ResourceVersion, before.Generation, after.ResourceVersion,
				after.Generation)
		}
	})
}

// DEP-231, DEP-246: what clients send beside what they mean is no reason to refuse.
func testDeploymentBodies(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "bodies")
	body := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":null,"labels":{"app":"my-nginx"},"name":"my-nginx"},
		"spec":{"replicas":1,"selector":{"matchLabels":{"app":"my-nginx"}},"strategy":{},
		"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"my-nginx"}},
		"spec":{"containers":[{"image":"nginx:1.14.2","name":"nginx","resources":{}}]}}},"status":{}}`
	client := s.Client.AppsV1().RESTClient()
	if err := client.Post().Namespace(ns).Resource("deployments").Param("fieldValidation", "Strict").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error(); err != nil {
		t.Fatalf("DEP-231: %v", err)
	}
	unknown := strings.Replace(body, `"strategy":{}`, `"strategie":{}`, 1)
	if err := client.Post().Namespace(ns).Resource("deployments").Param("fieldValidation", "Strict").
		SetHeader("Content-Type", "application/json").Body([]byte(unknown)).Do(ctx).Error(); !apierrors.IsBadRequest(
		err) {
		t.Errorf("an unknown field: %v", err)
	}
	deployments := s.Client.AppsV1().Deployments(ns)
	read := must[*appsv1.Deployment](t, "reading")(deployments.Get(ctx, "my-nginx", metav1.GetOptions{}))
	whole, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(whole), "nginx:1.14.2", "nginx:1.16.1", 1)
	put := func() error {
		return client.Put().Namespace(ns).Resource("deployments").Name("my-nginx").SetHeader("Content-Type",
			"application/json").Body([]byte(edited)).Do(ctx).Error()
	}
	if err := put(); err != nil {
		t.Errorf("DEP-246: the object as it was read, edited: %v", err)
	}
	if err := put(); !apierrors.IsConflict(err) {
		t.Errorf("DEP-246: a version that is out of date: %v", err)
	}
}

// DEP-016, DEP-145, DEP-191, DEP-222: objects are found, and taken away, by label; several may share them.
func testDeploymentSelectors(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "selectors")
	for _, name := range []string{"stable", "canary", "other"} {
		d := servertest.Deployment(name)
		d.Labels = map[string]string{"app": "guestbook", "track": name}
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"app": "same"},
			map[string]string{"app": "same"}
		must[*appsv1.Deployment](t, "DEP-016: a selector that others have")(s.Client.AppsV1().Deployments(ns).Create(
			ctx, d, metav1.CreateOptions{}))
		pod := newPod(name)
		pod.Labels = d.Labels
		must[*corev1.Pod](t, "creating")(s.Client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}))
	}
	for selector, want := range map[string]int{"app=guestbook": 3, "track in (stable,canary)": 2,
		"app=guestbook,track!=canary": 2, "!track": 0} {
		list, err := s.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: %d Pods, %v", selector, len(list.Items), err)
		}
	}
	if err := s.Client.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "track in (stable,canary)"}); err != nil {
		t.Fatalf("deleting by label: %v", err)
	}
	left := must[*appsv1.DeploymentList](t, "listing")(s.Client.AppsV1().Deployments(ns).List(ctx,
		metav1.ListOptions{}))
	if len(left.Items) != 1 || left.Items[0].Name != "other" {
		t.Errorf("DEP-222: left %+v", left.Items)
	}
}

// DEP-170: without a policy the object is gone at once. DEP-248: recreated, it may have another selector.
func testDeploymentReplaced(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	deployments, stored := pair(t, s, "replaced")
	if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	if _, err := deployments.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("DEP-170: %v", err)
	}
	d := servertest.Deployment("web")
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"app": "new"},
		map[string]string{"app": "new"}
	again := must[*appsv1.Deployment](t, "DEP-248: creating anew")(deployments.Create(ctx, d, metav1.CreateOptions{}))
	if again.UID == stored.UID || again.Generation != 1 {
		t.Errorf("DEP-248: uid %s, was %s", again.UID, stored.UID)
	}
	foreground := metav1.DeletePropagationForeground
	if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground,
		Preconditions: &metav1.Preconditions{UID: ptr.To(stored.UID)}}); !apierrors.IsConflict(err) {
		t.Errorf("deleting by the old uid: %v", err)
	}
	if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	marked := must[*appsv1.Deployment](t, "reading")(deployments.Get(ctx, "web", metav1.GetOptions{}))
	if marked.DeletionTimestamp == nil || len(marked.Finalizers) != 1 ||
		marked.Finalizers[0] != metav1.FinalizerDeleteDependents {
		t.Errorf("DEP-169: %+v", marked.ObjectMeta)
	}
}

// DEP-114: a watch brings rows, one for each change.
func testDeploymentTableWatch(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	deployments, stored := pair(t, s, "table-watch")
	stream, err := s.Client.AppsV1().RESTClient().Get().Namespace("table-watch").Resource("deployments").
		Param("watch", "true").Param("resourceVersion", stored.ResourceVersion).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Stream(ctx)
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer stream.Close()
	rows := json.NewDecoder(stream)
	for _, want := range []struct {
		replicas int32
		ready    string
	}{{3, "0/3"}, {5, "0/5"}} {
		stored.Spec.Replicas = ptr.To(want.replicas)
		stored = must[*appsv1.Deployment](t, "resizing")(deployments.Update(ctx, stored, metav1.UpdateOptions{}))
		var event struct {
			Type   string
			Object metav1.Table
		}
		if err := rows.Decode(&event); err != nil {
			t.Fatalf("reading the watch: %v", err)
		}
		if event.Type != "MODIFIED" || len(event.Object.Rows) != 1 || event.Object.Rows[0].Cells[1] != want.ready {
			t.Errorf("%s: %+v", event.Type, event.Object.Rows)
		}
	}
}

// DEP-001, DEP-003, DEP-211, DEP-213: what is served, under which names, and what is not.
func testDiscovery(t *testing.T, s *servertest.Server) {
	_, lists, err := s.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatalf("discovering: %v", err)
	}
	got := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			got[list.GroupVersion+"/"+r.Name] = r
			if r.Name == "verticalpodautoscalers" {
				t.Error("DEP-213: VerticalPodAutoscaler is an add-on")
			}
		}
	}
	for path, want := range map[string]metav1.APIResource{
		"apps/v1/deployments": {SingularName: "deployment", ShortNames: []string{"deploy"},
			Kind: "Deployment", Namespaced: true, Categories: []string{"all"}},
		"apps/v1/replicasets": {SingularName: "replicaset", ShortNames: []string{"rs"},
			Kind: "ReplicaSet", Namespaced: true, Categories: []string{"all"}},
		"v1/services": {SingularName: "service", ShortNames: []string{"svc"},
			Kind: "Service", Namespaced: true, Categories: []string{"all"}},
		"v1/namespaces": {SingularName: "namespace", ShortNames: []string{"ns"},
			Kind: "Namespace"},
		"v1/nodes": {SingularName: "node", ShortNames: []string{"no"}, Kind: "Node"},
		"autoscaling/v1/horizontalpodautoscalers": {SingularName: "horizontalpodautoscaler",
			ShortNames: []string{"hpa"}, Kind: "HorizontalPodAutoscaler", Namespaced: true,
			Categories: []string{"all"}},
		"autoscaling/v2/horizontalpodautoscalers": {SingularName: "horizontalpodautoscaler",
			ShortNames: []string{"hpa"}, Kind: "HorizontalPodAutoscaler", Namespaced: true,
			Categories: []string{"all"}},
		"autoscaling/v2/horizontalpodautoscalers/status": {SingularName: "horizontalpodautoscaler",
			Kind: "HorizontalPodAutoscaler", Namespaced: true},
		"scheduling.k8s.io/v1/priorityclasses": {SingularName: "priorityclass", ShortNames: []string{"pc"},
			Kind: "PriorityClass"},
		"scheduling.k8s.io/v1beta1/podgroups": {SingularName: "podgroup", Kind: "PodGroup", Namespaced: true},
		"scheduling.k8s.io/v1beta1/podgroups/status": {SingularName: "podgroup", Kind: "PodGroup",
			Namespaced: true},
		"scheduling.k8s.io/v1beta1/workloads": {SingularName: "workload", Kind: "Workload", Namespaced: true},
		"events.k8s.io/v1/events": {SingularName: "event", ShortNames: []string{"ev"}, Kind: "Event",
			Namespaced: true},
		"coordination.k8s.io/v1/leases": {SingularName: "lease", Kind: "Lease", Namespaced: true},
		"apps/v1/deployments/scale": {SingularName: "deployment", Kind: "Scale", Group: "autoscaling",
			Version: "v1", Namespaced: true},
		"v1/serviceaccounts/token": {SingularName: "serviceaccount", Kind: "TokenRequest",
			Group: "authentication.k8s.io", Version: "v1", Namespaced: true},
		"v1/namespaces/finalize": {SingularName: "namespace", Kind: "Namespace"},
		"rbac.authorization.k8s.io/v1/rolebindings": {SingularName: "rolebinding", Kind: "RoleBinding",
			Namespaced: true},
	} {
		r, found := got[path]
		if !found {
			t.Errorf("%s is not served", path)
			continue
		}
		if r.SingularName != want.SingularName || strings.Join(r.ShortNames, ",") != strings.Join(want.ShortNames,
			",") || r.Kind != want.Kind ||
			r.Namespaced != want.Namespaced || strings.Join(r.Categories, ",") != strings.Join(want.Categories, ",") ||
			r.Group != want.Group || r.Version != want.Version {
			t.Errorf("%s is served as %+v", path, r)
		}
	}
	if verbs := strings.Join(got["v1/namespaces/finalize"].Verbs, " "); verbs != "update" {
		t.Errorf("namespaces/finalize can be asked to %s, want update alone", verbs)
	}
	for _, verb := range []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"} {
		if !strings.Contains(strings.Join(got["apps/v1/deployments"].Verbs, " "), verb) {
			t.Errorf("DEP-002: deployments cannot be asked to %s", verb)
		}
	}
}
