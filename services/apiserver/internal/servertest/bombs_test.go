package servertest_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestBombs: what is short when it is sent and without end when it is read, is refused before it is read, whoever sends
// it and in whatever form.
func TestBombs(t *testing.T) {
	s := servertest.Start(t)
	ann := exchangeAs(t, s, "ann")
	aliases := "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nmetadata:\n  annotations:\n" +
		"    text: &text " + strings.Repeat("x", 30_000) + "\n    list: [" + strings.Repeat("*text, ", 10_000) + "]\n"
	deep := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "deep", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(`{"a":`, 9_990))}}}}}
	codecs := clientscheme.Codecs
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	encoded, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), deep)
	if err != nil {
		t.Fatal(err)
	}
	const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	for name, row := range map[string]struct {
		target, contentType string
		body                []byte
		status              int
		want                string
	}{
		"aliases of YAML": {reviews, "application/yaml", []byte(aliases),
			http.StatusRequestEntityTooLarge, "YAML aliases"},
		"YAML of an unknown name": {reviews, "text/yaml", []byte(aliases),
			http.StatusUnsupportedMediaType, ""},
		"deep fields in protobuf": {"/api/v1/namespaces/default/configmaps", runtime.ContentTypeProtobuf, encoded,
			http.StatusForbidden, ""}, // ann may not, and is not told more
	} {
		a := ann.alone(t, batch.Request{Method: http.MethodPost, Target: row.target, ContentType: row.contentType,
			Accept: "application/json", Body: row.body})
		if a.Status != row.status || !strings.Contains(string(a.Body), row.want) {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	a := exchangeAs(t, s, servertest.Admin).alone(t, batch.Request{Method: http.MethodPost, Body: encoded,
		Target:      "/api/v1/namespaces/default/configmaps",
		ContentType: runtime.ContentTypeProtobuf, Accept: "application/json"})
	if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "more than 100 deep") {
		t.Errorf("deep fields in protobuf: %d %s", a.Status, a.Body)
	}
}
