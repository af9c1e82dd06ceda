package servertest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// hooks is a server of webhooks, by path, that writes down what it is asked.
type hooks struct {
	*servertest.Server
	server *httptest.Server
	bundle []byte
	port   int32

	mu    sync.Mutex
	paths map[string]http.HandlerFunc
	asked map[string][]*admissionv1.AdmissionRequest
}

// startHooks starts an apiserver and webhooks, which are 127.0.0.1 and the Service hook of the namespace hooks.
func startHooks(t *testing.T, change ...func(*inproc.Config)) *hooks {
	t.Helper()
	h := &hooks{paths: map[string]http.HandlerFunc{}, asked: map[string][]*admissionv1.AdmissionRequest{}}
	h.server = httptest.NewUnstartedServer(h)
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{h.certificate(t)}}
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	h.port = int32(h.server.Listener.Addr().(*net.TCPAddr).Port)
	h.Server = servertest.Start(t, append(change, func(c *inproc.Config) { c.DialExtension = dial })...)
	return h
}

func (h *hooks) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhooks"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"hook.hooks.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	h.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// ServeHTTP answers as the path does.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.asked[r.URL.Path] = append(h.asked[r.URL.Path], review.Request)
	answer := h.paths[r.URL.Path]
	h.mu.Unlock()
	answer(w, r.WithContext(context.WithValue(r.Context(), reviewed{}, review.Request)))
}

type reviewed struct{}

// says answers with what a decision makes of a request.
func says(decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := r.Context().Value(reviewed{}).(*admissionv1.AdmissionRequest)
		response := decide(asked)
		if response.UID == "" {
			response.UID = asked.UID
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{
			APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Response: response})
	}
}

func allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func deny(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not today", Code: http.StatusTeapot}}
}

// patch allows and changes.
func patch(text string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(text),
			PatchType: new(admissionv1.PatchTypeJSONPatch)}
	}
}

// calls are what a path was asked about objects with the name; an empty one is for all but those of await.
func (h *hooks) calls(path, name string) []*admissionv1.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.asked[path]), func(r *admissionv1.AdmissionRequest) bool {
		return r.Name == sentinel || name != "" && r.Name != name
	})
}

// sentinel is the ConfigMap by which a test sees that a webhook is in force.
const sentinel = "sentinel"

// hook is a webhook of the namespace that answers at /namespace-name, about ConfigMaps.
func (h *hooks) hook(ns, name string, answer http.HandlerFunc) admissionregistrationv1.ValidatingWebhook {
	path := "/" + ns + "-" + name
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paths[path] = answer
	return admissionregistrationv1.ValidatingWebhook{
		Name: name + "." + ns + ".example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL:      new(h.server.URL + path),
			CABundle: h.bundle,
		},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
				Resources: []string{"configmaps"}}}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
	}
}

// mutating is the same webhook as one that may change requests.
func mutating(v admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules,
		FailurePolicy: v.FailurePolicy, MatchPolicy: v.MatchPolicy, NamespaceSelector: v.NamespaceSelector,
		ObjectSelector: v.ObjectSelector, SideEffects: v.SideEffects, TimeoutSeconds: v.TimeoutSeconds,
		AdmissionReviewVersions: v.AdmissionReviewVersions, MatchConditions: v.MatchConditions}
}

// validate puts checking webhooks in force, until the test ends.
func (h *hooks) validate(t *testing.T, ns string, all ...admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	client := h.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns}, Webhooks: append(all, h.hook(ns, "seen", says(allow)))},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	h.await(t, ns)
}

// mutate puts changing webhooks in force, in their order, until the test ends.
func (h *hooks) mutate(t *testing.T, ns string, all ...admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	client := h.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	first := mutating(h.hook(ns, "seen", says(allow)))
	_, err := client.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks:   append([]admissionregistrationv1.MutatingWebhook{first}, all...)}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	h.await(t, ns)
}

// await waits until the webhooks of the namespace are asked.
func (h *hooks) await(t *testing.T, ns string) {
	t.Helper()
	servertest.Eventually(t, "webhooks of "+ns+" in force", func(ctx context.Context) string {
		_, err := h.Client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: sentinel}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.asked["/"+ns+"-seen"]) == 0 {
			return fmt.Sprint("nothing is asked, and the write ends with ", err)
		}
		return ""
	})
}

// make makes a ConfigMap.
func (h *hooks) make(t *testing.T, ns, name string, change ...func(*corev1.ConfigMap)) (*corev1.ConfigMap, error) {
	t.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range change {
		c(made)
	}
	return h.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), made, metav1.CreateOptions{})
}

// uid is another one than any request has.
const uid = types.UID("another")
