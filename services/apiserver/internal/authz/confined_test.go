package authz_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/kit/client"
	"keelson.dev/services/apiserver/internal/servertest"
)

// A collector of objects of every kind sees, over the wire, which Secrets there are, and none of their contents.
func TestCollectorsDoNotReadSecrets(t *testing.T) {
	s := servertest.Start(t)
	namespace := s.Namespace(t, "confined")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "x"}}
	if _, err := s.Client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := s.ConfigAs(servertest.Admin)
	config.Impersonate = restclient.ImpersonationConfig{UserName: "system:keelson:podgc",
		Groups: []string{"system:authenticated"}}
	whole, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	some, err := client.Metadata(config)
	if err != nil {
		t.Fatal(err)
	}
	secrets, known := whole.CoreV1().Secrets(namespace),
		some.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	const patch = `{"metadata":{"finalizers":["example.com/a"]}}`
	_, got := secrets.Get(t.Context(), "s", metav1.GetOptions{})
	_, listed := secrets.List(t.Context(), metav1.ListOptions{})
	_, watched := secrets.Watch(t.Context(), metav1.ListOptions{})
	_, patched := secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	deleted := secrets.Delete(t.Context(), "s", dryRun)
	collected := secrets.DeleteCollection(t.Context(), dryRun, metav1.ListOptions{})
	for verb, err := range map[string]error{"get": got, "list": listed, "watch": watched, "patch": patched,
		"delete": deleted, "deletecollection": collected} {
		what := "the metadata of Secrets"
		if verb == "patch" {
			what = "merge patches of finalizers and owners"
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
			`ClusterRole "system:keelson:podgc" grants `+what+" only") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := known.Patch(t.Context(), "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if one, err := known.Get(t.Context(), "s", metav1.GetOptions{}); err != nil || len(one.Finalizers) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	if all, err := known.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := whole.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	following, err := known.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer following.Stop()
	if event := <-following.ResultChan(); event.Type != "ADDED" {
		t.Errorf("%+v", event)
	} else if _, ok := event.Object.(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("a watch shows a %T", event.Object)
	}
	testOthersStayAsTheyAre(t, known, some.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(
		namespace))
	if err := known.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// testOthersStayAsTheyAre: no patch of who collects objects of every kind brings what is in a Secret into an answer,
// nor a Secret into a Pod.
func testOthersStayAsTheyAre(t *testing.T, secrets, deployments metadata.ResourceInterface) {
	for name, row := range map[string]struct {
		of    metadata.ResourceInterface
		kind  types.PatchType
		patch string
	}{
		"data into an annotation": {secrets, types.JSONPatchType,
			`[{"op":"add","path":"/metadata/annotations","value":{}},
			{"op":"copy","from":"/data/password","path":"/metadata/annotations/leak"}]`},
		"a question about data": {secrets, types.JSONPatchType, `[{"op":"test","path":"/data/password","value":"eA=="}]`},
		"data that is none":     {secrets, types.MergePatchType, `{"data":{"q":"?"}}`},
		"metadata that is none": {secrets, types.MergePatchType, `{"metadata":{"labels":5}}`},
		"a volume": {deployments, types.MergePatchType,
			`{"spec":{"template":{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}}}`},
		"a label": {deployments, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`},
	} {
		_, err := row.of.Patch(t.Context(), "s", row.kind, []byte(row.patch), metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
