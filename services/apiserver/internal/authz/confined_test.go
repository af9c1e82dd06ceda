package authz_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

// Who collects objects of every kind sees, over the wire, which Secrets there are, and nobody's passwords.
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
	some, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		t.Fatal(err)
	}
	secrets, known := whole.CoreV1().Secrets(namespace),
		some.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	const patch = `{"metadata":{"labels":{"a":"b"}}}`
	_, got := secrets.Get(t.Context(), "s", metav1.GetOptions{})
	_, listed := secrets.List(t.Context(), metav1.ListOptions{})
	_, watched := secrets.Watch(t.Context(), metav1.ListOptions{})
	_, patched := secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	for verb, err := range map[string]error{"get": got, "list": listed, "watch": watched, "patch": patched} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
			`ClusterRole "system:keelson:podgc" grants the metadata of Secrets only`) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := known.Patch(t.Context(), "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if one, err := known.Get(t.Context(), "s", metav1.GetOptions{}); err != nil || one.Labels["a"] != "b" {
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
	if err := known.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
