package servertest_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// converter is a webhook: the color of version v1 is the hue of version v2.
type converter struct {
	*httptest.Server
	broken atomic.Bool
}

func startConverter(t *testing.T) *converter {
	t.Helper()
	c := &converter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.convert))
	t.Cleanup(c.Close)
	return c
}

func (c *converter) convert(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || c.broken.Load() {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: "Success"}}
	for _, raw := range review.Request.Objects {
		o := &unstructured.Unstructured{}
		_ = o.UnmarshalJSON(raw.Raw)
		from, to := "color", "hue"
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
			from, to = to, from
		}
		if value, found, _ := unstructured.NestedString(o.Object, "spec", from); found {
			unstructured.RemoveNestedField(o.Object, "spec", from)
			_ = unstructured.SetNestedField(o.Object, value, "spec", to)
		}
		o.SetAPIVersion(review.Request.DesiredAPIVersion)
		answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: o})
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// twoVersions is a definition whose second version says hue for color; the first is stored.
func twoVersions(t *testing.T, c *converter) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := widgetDefinition(t)
	second := *d.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage, second.SelectableFields, second.AdditionalPrinterColumns = "v2", false, nil, nil
	d.Spec.Versions = append(d.Spec.Versions, second)
	schemaOf(d, 1)["hue"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	delete(schemaOf(d, 1), "color")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: ptr.To(c.URL), CABundle: authority}}}
	return d
}

// What is stored in one version is read and written in another by a webhook; where that does not answer, who asks for
// the other version is told so, and the stored one is served.
func TestCustomResourceConversion(t *testing.T) {
	s := servertest.Start(t)
	config := s.ConfigAs(servertest.Admin)
	c := startConverter(t)
	define(t, config, twoVersions(t, c))
	v1 := objects(t, config).Resource(widgets).Namespace(metav1.NamespaceDefault)
	v2 := objects(t, config).Resource(widgets.GroupResource().WithVersion("v2")).Namespace(metav1.NamespaceDefault)
	if _, err := v1.Create(t.Context(), widget("first", "color", "red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read, err := v2.Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil || field(read, "spec", "hue") != "red" || field(read, "spec", "color") != "" {
		t.Errorf("the other version: %v, %v", read, err)
	}
	other := widget("second", "hue", "blue")
	other.SetAPIVersion("example.com/v2")
	if _, err := v2.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := v1.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=second"})
	if err != nil || len(list.Items) != 1 || field(&list.Items[0], "spec", "color") != "blue" {
		t.Errorf("what was written in the other version: %v, %v", list, err)
	}
	c.broken.Store(true)
	if _, err := v2.Get(t.Context(), "first", metav1.GetOptions{}); err == nil ||
		!strings.Contains(err.Error(), "conversion webhook for example.com/v1, Kind=Widget failed") {
		t.Errorf("the other version without the webhook: %v", err)
	}
	if _, err := v1.Get(t.Context(), "first", metav1.GetOptions{}); err != nil {
		t.Errorf("the stored version without the webhook: %v", err)
	}
	if _, err := v1.Create(t.Context(), widget("third", "color", "green"), metav1.CreateOptions{}); err != nil {
		t.Errorf("writing the stored version without the webhook: %v", err)
	}
}
