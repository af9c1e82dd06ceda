package servertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func create(t *testing.T, client typedcorev1.ConfigMapInterface, c *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	created, err := client.Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s: %v", c.Name, err)
	}
	return created
}

// TestAPI drives one server as any client does.
func TestAPI(t *testing.T) {
	s := servertest.Start(t)
	for name, test := range map[string]func(*testing.T, *servertest.Server){
		"writes":              testWrites,
		"server-side apply":   testApply,
		"dry run":             testDryRun,
		"strict fields":       testStrictFields,
		"errors":              testErrors,
		"watch":               testWatch,
		"watch list":          testWatchList,
		"watch progress":      testWatchProgress,
		"selectors":           testSelectors,
		"exact version":       testExactVersion,
		"pages":               testPages,
		"tables":              testTables,
		"discovery":           testDiscovery,
		"openapi":             testOpenAPI,
		"version":             testVersion,
		"protobuf":            testProtobuf,
		"events, two shapes":  testEvents,
		"events, no cache":    testEventWatch,
		"event batch":         testEventBatch,
		"event batch rights":  testEventBatchRights,
		"event batch bounds":  testEventBatchBounds,
		"event batch option":  testEventBatchOptions,
		"no event batch":      testNoEventBatch,
		"event recorder":      testEventRecorder,
		"batch":               testRequestBatch,
		"large joined writes": testJoinedLargeWrites,
		"batch rights":        testRequestBatchRights,
		"joined writes":       testJoinedWrites,
		"access":              testAccess,
		"tokens":              testTokens,
		"system objects":      testSystemObjects,
		"failed writes":       testFailedWrites,
		"delete policies":     testDeletePolicies,
		"identity":            testIdentity,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func testWrites(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "writes"))
	first := create(t, client, configMap("a", map[string]string{"k": "1"}))
	if first.UID == "" || first.ResourceVersion == "" || first.CreationTimestamp.IsZero() {
		t.Errorf("created without system metadata: %+v", first.ObjectMeta)
	}
	second := first.DeepCopy()
	second.Data["k"] = "2"
	second, err := client.Update(ctx, second, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("updating: %v", err)
	}
	if _, err := client.Update(ctx, first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updating an old version: %v, want a conflict", err)
	}
	same, err := client.Update(ctx, second.DeepCopy(), metav1.UpdateOptions{})
	if err != nil || same.ResourceVersion != second.ResourceVersion {
		t.Errorf("an update without a change: version %s, error %v, want version %s", same.ResourceVersion, err,
			second.ResourceVersion)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"merge":"x"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"x"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"x"}]`,
	} {
		if _, err := client.Patch(ctx, "a", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("patching with %s: %v", kind, err)
		}
	}
	got, err := client.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || got.Data["k"] != "2" || got.Data["merge"]+got.Data["strategic"]+got.Data["json"] != "xxx" {
		t.Errorf("after the patches: %v, %v", got.Data, err)
	}
	wrong := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}
	if err := client.Delete(ctx, "a", wrong); !apierrors.IsConflict(err) {
		t.Errorf("deleting another UID: %v, want a conflict", err)
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting: %v", err)
	}
	if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the delete: %v, want not found", err)
	}
}

// DEP-244: server-side apply with owners and conflicts.
func testApply(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "apply")
	client := s.Client.CoreV1().ConfigMaps(ns)
	apply := func(manager, value string, force bool) (*corev1.ConfigMap, error) {
		return client.Apply(ctx, corev1apply.ConfigMap("a", ns).WithData(map[string]string{"k": value}),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", "1", false); err != nil {
		t.Fatalf("applying: %v", err)
	}
	if _, err := apply("two", "2", false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"one"`) {
		t.Errorf("applying over another manager: %v, want a conflict that names it", err)
	}
	got, err := apply("two", "2", true)
	if err != nil || got.Data["k"] != "2" {
		t.Fatalf("forcing: %v, %v", got, err)
	}
	if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "two" {
		t.Errorf("managers after the force: %+v", got.ManagedFields)
	}
	got, err = client.Apply(ctx, corev1apply.ConfigMap("a", ns), metav1.ApplyOptions{FieldManager: "two"})
	if err != nil || len(got.Data) != 0 {
		t.Errorf("a field that its manager no longer applies: %v, %v, want it gone", got.Data, err)
	}
}

func testDryRun(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "dry"))
	all := []string{metav1.DryRunAll}
	got, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{DryRun: all})
	if err != nil || got.UID == "" {
		t.Errorf("dry create: %v, %v", got, err)
	}
	if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry create: %v, want not found", err)
	}
	stored := create(t, client, configMap("a", nil))
	if _, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`),
		metav1.PatchOptions{DryRun: all}); err != nil {
		t.Errorf("dry patch: %v", err)
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Errorf("dry delete: %v", err)
	}
	if got, err := client.Get(ctx, "a", metav1.GetOptions{}); err != nil ||
		got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("after dry writes: %v, %v, want it untouched", got, err)
	}
}

func testStrictFields(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "strict")
	post := func(validation string) (warned []string, _ error) {
		warnings := &recorder{}
		config := s.ConfigAs(servertest.Admin)
		config.WarningHandler = warnings
		client := kubernetes.NewForConfigOrDie(config)
		err := client.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").Param("fieldValidation",
			validation).
			SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"},"dat":{"x":"y"}}`)).Do(
			t.Context()).Error()
		return warnings.texts, err
	}
	if _, err := post("Strict"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dat"`) {
		t.Errorf("strict: %v, want a bad request that names the field", err)
	}
	if warnings, err := post("Warn"); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0],
		`unknown field "dat"`) {
		t.Errorf("warn: error %v, warnings %q", err, warnings)
	}
	if warnings, err := post("Ignore"); err != nil || len(warnings) != 0 {
		t.Errorf("ignore: error %v, warnings %q", err, warnings)
	}
}

type recorder struct{ texts []string }

func (r *recorder) HandleWarningHeader(_ int, _, text string) { r.texts = append(r.texts, text) }

func testErrors(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "errors"))
	create(t, client, configMap("a", nil))
	if _, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating twice: %v", err)
	}
	_, err := client.Create(ctx, configMap("No_Name", map[string]string{"a/b": "x"}), metav1.CreateOptions{})
	var causes []string
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			causes = append(causes, cause.Field)
		}
	}
	if !apierrors.IsInvalid(err) || fmt.Sprint(causes) != "[metadata.name data[a/b]]" {
		t.Errorf("invalid fields: %v with causes %v", err, causes)
	}
	if _, err := s.Client.CoreV1().ConfigMaps("nowhere").Create(ctx, configMap("a", nil),
		metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("creating in a missing namespace: %v, want not found", err)
	}
	err = s.Client.CoreV1().RESTClient().Get().AbsPath("/apis/nothing/v1/things").Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		t.Errorf("asking for an unknown group: %v, want not found", err)
	}
	_, err = client.List(ctx, metav1.ListOptions{FieldSelector: "data.x=y"})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field selector: %v, want a bad request", err)
	}
}

func testPages(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "pages"))
	for i := range 5 {
		create(t, client, configMap(fmt.Sprintf("c%d", i), nil))
	}
	var names []string
	options := metav1.ListOptions{Limit: 2}
	for {
		page, err := client.List(t.Context(), options)
		if err != nil {
			t.Fatalf("listing: %v", err)
		}
		for _, c := range page.Items {
			names = append(names, c.Name)
		}
		if len(names) == 2 {
			// A page shows the collection as it was when the list began.
			create(t, client, configMap("c9", nil))
			if page.RemainingItemCount == nil || *page.RemainingItemCount != 3 {
				t.Errorf("remaining after the first page: %v, want 3", page.RemainingItemCount)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "c0 c1 c2 c3 c4" {
		t.Errorf("pages: %s", got)
	}
}

func testProtobuf(t *testing.T, s *servertest.Server) {
	config := s.ConfigAs(servertest.Admin)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(s.Namespace(t, "protobuf"))
	create(t, client, configMap("a", map[string]string{"k": "v"}))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Data["k"] != "v" {
		t.Errorf("listing as protobuf: %v, %v", list, err)
	}
}

func testVersion(t *testing.T, s *servertest.Server) {
	version, err := s.Client.Discovery().ServerVersion()
	if err != nil || version.Major != "1" || version.Minor != "37" || !strings.HasPrefix(version.GitVersion, "v1.37.") {
		t.Errorf("version: %+v, %v", version, err)
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/metrics"} {
		if err := get(t.Context(), s.Client.CoreV1().RESTClient(), path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func get(ctx context.Context, client rest.Interface, path string) error {
	return client.Get().AbsPath(path).Do(ctx).Error()
}
