package resourcetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

func testDeployments(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	deployments := s.Client.AppsV1().Deployments(s.Namespace(t, "deployments"))
	stored := must[*appsv1.Deployment](t, "creating")(deployments.Create(ctx, servertest.Deployment("web"),
		metav1.CreateOptions{}))
	// DEP-008, DEP-019
	if *stored.Spec.Replicas != 1 || stored.Spec.Strategy.RollingUpdate.MaxSurge.StrVal != "25%" ||
		stored.Generation != 1 {
		t.Errorf("stored %+v of generation %d", stored.Spec, stored.Generation)
	}
	// DEP-005
	named := servertest.Deployment("named")
	for _, name := range []string{"Web", "web_1", "-web", strings.Repeat("a", 254)} {
		named.Name = name
		_, err := deployments.Create(ctx, named, metav1.CreateOptions{})
		refusedAt(t, err, "metadata.name")
	}
	named.Name = strings.Repeat("a", 253)
	must[*appsv1.Deployment](t, "DEP-005 a name of 253 characters")(deployments.Create(ctx, named,
		metav1.CreateOptions{}))
	must[*appsv1.Deployment](t, "DEP-005 a name with a dot")(deployments.Create(ctx, servertest.Deployment("web.v1"),
		metav1.CreateOptions{}))
	// DEP-004
	if _, err := deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "empty"}},
		metav1.CreateOptions{}); err == nil {
		t.Error("a Deployment without a spec was accepted")
	}
	// DEP-014, DEP-078: refused by update and by patch, and the stored object stays.
	changed := stored.DeepCopy()
	changed.Spec.Selector.MatchLabels["tier"], changed.Spec.Template.Labels["tier"] = "a", "a"
	_, err := deployments.Update(ctx, changed, metav1.UpdateOptions{})
	refusedAt(t, err, "spec.selector")
	patch := `{"spec":{"selector":{"matchLabels":{"tier":"a"}},"template":{"metadata":{"labels":{"tier":"a"}}}}}`
	_, err = deployments.Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	refusedAt(t, err, "spec.selector")
	after := must[*appsv1.Deployment](t, "reading")(deployments.Get(ctx, "web", metav1.GetOptions{}))
	if after.ResourceVersion != stored.ResourceVersion {
		t.Errorf("refused writes changed the object: %+v", after)
	}
	// DEP-019: status and spec are written apart.
	both := after.DeepCopy()
	both.Spec.Replicas, both.Status.Replicas, both.Status.ObservedGeneration = ptr.To[int32](5), 5, 1
	reported := must[*appsv1.Deployment](t, "writing the status")(deployments.UpdateStatus(ctx, both,
		metav1.UpdateOptions{}))
	if *reported.Spec.Replicas != 1 || reported.Status.Replicas != 5 || reported.Generation != 1 {
		t.Errorf("a status write made %d replicas, status %+v, generation %d", *reported.Spec.Replicas, reported.Status,
			reported.Generation)
	}
	both = reported.DeepCopy()
	both.Spec.Replicas, both.Status.Replicas = ptr.To[int32](3), 0
	resized := must[*appsv1.Deployment](t, "writing the spec")(deployments.Update(ctx, both, metav1.UpdateOptions{}))
	if *resized.Spec.Replicas != 3 || resized.Status.Replicas != 5 || resized.Generation != 2 {
		t.Errorf("a spec write made %d replicas, status %+v, generation %d", *resized.Spec.Replicas, resized.Status,
			resized.Generation)
	}
	// DEP-093: what kubectl rollout undo sends.
	undo := `[{"op":"replace","path":"/spec/template","value":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"nginx","image":"old"}]}}},
		{"op":"replace","path":"/metadata/annotations","value":{"a":"b"}}]`
	if _, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatalf("annotating: %v", err)
	}
	undone := must[*appsv1.Deployment](t, "undoing")(deployments.Patch(ctx, "web", types.JSONPatchType, []byte(undo),
		metav1.PatchOptions{}))
	if undone.Spec.Template.Spec.Containers[0].Image != "old" ||
		undone.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("undone to %+v", undone.Spec.Template.Spec)
	}
}

// DEP-020, DEP-095, DEP-232.
func testDeploymentScale(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	deployments := s.Client.AppsV1().Deployments(s.Namespace(t, "scale"))
	must[*appsv1.Deployment](t, "creating")(deployments.Create(ctx, servertest.Deployment("web"),
		metav1.CreateOptions{}))
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Fatalf("reading the scale: %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 10
	if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("scaling: %v", err)
	}
	if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err == nil {
		t.Error("an outdated scale was accepted")
	}
	d := must[*appsv1.Deployment](t, "reading")(deployments.Get(ctx, "web", metav1.GetOptions{}))
	if *d.Spec.Replicas != 10 || d.Generation != 2 {
		t.Errorf("scaled to %d, generation %d", *d.Spec.Replicas, d.Generation)
	}
	if _, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`),
		metav1.PatchOptions{}, "scale"); err != nil {
		t.Fatalf("patching the scale: %v", err)
	}
	if d = must[*appsv1.Deployment](t, "reading")(deployments.Get(ctx, "web",
		metav1.GetOptions{})); *d.Spec.Replicas != 1 {
		t.Errorf("patched to %d", *d.Spec.Replicas)
	}
	_, err = deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`),
		metav1.PatchOptions{}, "scale")
	refusedAt(t, err, "spec.replicas")
}

// scaled are the calls by which a client scales one kind.
type scaled interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale,
		error)
}

// DEP-020: each kind's own /scale, which says how many replicas there are and changes how many there are to be.
func testScales(t *testing.T, s *servertest.Server) {
	ctx, apps, ns := t.Context(), s.Client.AppsV1(), s.Namespace(t, "scales")
	d := must[*appsv1.Deployment](t, "creating")(apps.Deployments(ns).Create(ctx, servertest.Deployment("web"),
		metav1.CreateOptions{}))
	rs := must[*appsv1.ReplicaSet](t, "creating")(apps.ReplicaSets(ns).Create(ctx,
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}, metav1.CreateOptions{}))
	d.Status.Replicas, rs.Status.Replicas = 3, 3
	must[*appsv1.Deployment](t, "reporting")(apps.Deployments(ns).UpdateStatus(ctx, d, metav1.UpdateOptions{}))
	must[*appsv1.ReplicaSet](t, "reporting")(apps.ReplicaSets(ns).UpdateStatus(ctx, rs, metav1.UpdateOptions{}))
	for kind, row := range map[string]struct {
		client  scaled
		desired func() int32
		patch   func(string) error
	}{
		"Deployment": {apps.Deployments(ns),
			func() int32 {
				return *must[*appsv1.Deployment](t, "reading")(apps.Deployments(ns).Get(ctx, "web",
					metav1.GetOptions{})).Spec.Replicas
			},
			func(patch string) error {
				_, err := apps.Deployments(ns).Patch(ctx, "web", types.MergePatchType, []byte(patch),
					metav1.PatchOptions{}, "scale")
				return err
			}},
		"ReplicaSet": {apps.ReplicaSets(ns),
			func() int32 {
				return *must[*appsv1.ReplicaSet](t, "reading")(apps.ReplicaSets(ns).Get(ctx, "web",
					metav1.GetOptions{})).Spec.Replicas
			},
			func(patch string) error {
				_, err := apps.ReplicaSets(ns).Patch(ctx, "web", types.MergePatchType, []byte(patch),
					metav1.PatchOptions{}, "scale")
				return err
			}},
	} {
		scale := must[*autoscalingv1.Scale](t, "reading the scale of a "+kind)(row.client.GetScale(ctx, "web",
			metav1.GetOptions{}))
		if scale.Kind != "Scale" && scale.Kind != "" || scale.Spec.Replicas != 1 || scale.Status.Replicas != 3 ||
			scale.Status.Selector != "app=web" {
			t.Errorf("the scale of a %s is %+v %+v", kind, scale.Spec, scale.Status)
		}
		scale.Spec.Replicas, scale.Status.Replicas = 7, 99
		scale = must[*autoscalingv1.Scale](t, "scaling a "+kind)(row.client.UpdateScale(ctx, "web", scale,
			metav1.UpdateOptions{}))
		if scale.Spec.Replicas != 7 || scale.Status.Replicas != 3 || row.desired() != 7 {
			t.Errorf("a %s of %d replicas was scaled to 7: %+v %+v", kind, row.desired(), scale.Spec, scale.Status)
		}
		if err := row.patch(`{"spec":{"replicas":2}}`); err != nil || row.desired() != 2 {
			t.Errorf("a %s of %d replicas was patched to 2: %v", kind, row.desired(), err)
		}
	}
}

// DEP-098, DEP-243, DEP-244: who applies owns what they apply, and nothing of the status.
func testDeploymentApply(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "apply")
	deployments := s.Client.AppsV1().Deployments(ns)
	config := func() *applyappsv1.DeploymentApplyConfiguration {
		return applyappsv1.Deployment("web", ns).WithSpec(applyappsv1.DeploymentSpec().
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(applycorev1.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
				WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("nginx").WithImage(
					"a")))))
	}
	apply := func(c *applyappsv1.DeploymentApplyConfiguration) *appsv1.Deployment {
		t.Helper()
		return must[*appsv1.Deployment](t, "applying")(deployments.Apply(ctx, c,
			metav1.ApplyOptions{FieldManager: "me"}))
	}
	if d := apply(config()); *d.Spec.Replicas != 1 {
		t.Errorf("applied with %d replicas", *d.Spec.Replicas)
	}
	scale := must[*autoscalingv1.Scale](t, "reading the scale")(deployments.GetScale(ctx, "web", metav1.GetOptions{}))
	scale.Spec.Replicas = 4
	if _, err := deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{FieldManager: "scaler"}); err != nil {
		t.Fatalf("scaling: %v", err)
	}
	if d := apply(config()); *d.Spec.Replicas != 4 {
		t.Errorf("DEP-098: applying without replicas set them to %d", *d.Spec.Replicas)
	}
	if _, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`),
		metav1.PatchOptions{FieldManager: "boss"}); err != nil {
		t.Fatalf("patching: %v", err)
	}
	replicated := config()
	replicated.Spec.WithReplicas(2)
	if _, err := deployments.Apply(ctx, replicated,
		metav1.ApplyOptions{FieldManager: "me"}); !apierrors.IsConflict(err) {
		t.Errorf("DEP-244: replicas that somebody else owns were taken over without force: %v", err)
	}
	if _, err := deployments.Apply(ctx, replicated, metav1.ApplyOptions{FieldManager: "me", Force: true}); err != nil {
		t.Errorf("taking over by force: %v", err)
	}
	labeled := config().WithLabels(map[string]string{"a": "b"})
	if d := apply(labeled); d.Labels["a"] != "b" {
		t.Errorf("labels %v", d.Labels)
	}
	withStatus := config().WithStatus(applyappsv1.DeploymentStatus().WithReplicas(7))
	d := apply(withStatus)
	if d.Status.Replicas != 0 || d.Labels["a"] != "" {
		t.Errorf("status %+v, labels %v: the status is not the applier's, and a label left out goes", d.Status,
			d.Labels)
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager == "me" && entry.FieldsV1 != nil && json.Valid(entry.FieldsV1.GetRawBytes()) &&
			hasKey(t, entry.FieldsV1.GetRawBytes(), "f:status") {
			t.Error("the applier owns the status")
		}
	}
}

func hasKey(t *testing.T, raw []byte, key string) bool {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("decoding managed fields: %v", err)
	}
	_, found := fields[key]
	return found
}

// DEP-033, DEP-036: the server makes the table, in a get and in a watch.
func testDeploymentTable(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "table")
	must[*appsv1.Deployment](t, "creating")(s.Client.AppsV1().Deployments(ns).Create(ctx, servertest.Deployment("web"),
		metav1.CreateOptions{}))
	raw, err := s.Client.AppsV1().RESTClient().Get().Namespace(ns).Resource("deployments").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		t.Fatalf("reading the table: %v", err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatalf("decoding the table: %v", err)
	}
	var headings []string
	for _, column := range table.ColumnDefinitions {
		headings = append(headings, column.Name)
	}
	want := []string{"Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"}
	if len(table.Rows) != 1 || table.Rows[0].Cells[1] != "0/1" || len(headings) != len(want) {
		t.Fatalf("table %s", raw)
	}
	for i := range want {
		if headings[i] != want[i] {
			t.Errorf("heading %d is %s, want %s", i, headings[i], want[i])
		}
	}
}
