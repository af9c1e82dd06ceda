package servertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// text answers with whatever it is.
func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// dies sends the beginning of an answer and ends the connection.
func dies(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// A webhook that does not answer as one should gives one clear error to who asked, and nothing to anybody else: what it
// was asked about is not stored, and the next write goes through where it is not asked.
func TestHostileWebhooks(t *testing.T) {
	h := startHooks(t)
	large := strings.Repeat("x", 1<<20)
	wrong := func(edit func(*admissionv1.AdmissionResponse)) http.HandlerFunc {
		return says(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			answer := &admissionv1.AdmissionResponse{Allowed: true}
			edit(answer)
			return answer
		})
	}
	elsewhere := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, h.server.URL+"/elsewhere", code)
		}
	}
	visited := false
	h.paths["/elsewhere"] = func(http.ResponseWriter, *http.Request) { visited = true }
	rows := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"garbage", text("\x00\x01garbage"), "control characters are not allowed"},
		{"nothing", text(""), "0-length response"},
		{"another-kind", text(`{"apiVersion":"v1","kind":"Status"}`), "unknown conversion"},
		{"no-response", text(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`),
			"webhook response was absent"},
		{"ten-mib", func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = io.WriteString(w, large)
			}
		}, "its answer has more than 5242880 bytes"},
		{"found", elsewhere(http.StatusFound), "it answers 302 Found, and no redirect is followed"},
		{"temporary", elsewhere(http.StatusTemporaryRedirect), "no redirect is followed"},
		{"wrong-uid", wrong(func(a *admissionv1.AdmissionResponse) { a.UID = uid }),
			`expected response.uid="`},
		{"dies", dies, "unexpected EOF"},
		{"breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}, "out of order"},
		{"no-patch", wrong(func(a *admissionv1.AdmissionResponse) {
			a.Patch, a.PatchType = []byte("garbage"), new(admissionv1.PatchTypeJSONPatch)
		}), "undecodable patch"},
		{"no-patch-type", wrong(func(a *admissionv1.AdmissionResponse) { a.Patch = []byte("[]") }), "patchType"},
		{"bad-patch", wrong(func(a *admissionv1.AdmissionResponse) {
			a.Patch = []byte(`[{"op":"remove","path":"/data/missing"}]`)
			a.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}), "remove"},
		{"no-object", wrong(func(a *admissionv1.AdmissionResponse) {
			a.Patch = []byte(`[{"op":"replace","path":"/data","value":"text"}]`)
			a.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}), "cannot unmarshal"},
	}
	ns := h.Namespace(t, "hostile")
	var all []admissionregistrationv1.MutatingWebhook
	for _, row := range rows {
		w := mutating(h.hook(ns, row.name, row.answer))
		w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "named",
			Expression: `object.metadata.name == "` + row.name + `"`}}
		all = append(all, w)
	}
	h.mutate(t, ns, all...)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := h.make(t, ns, row.name, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), row.want) ||
				strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Errorf("%v, want %q", err, row.want)
			}
			_, err = h.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), row.name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("afterwards: %v", err)
			}
			if _, err := h.make(t, ns, "after-"+row.name); err != nil {
				t.Errorf("what it is not asked about: %v", err)
			}
		})
	}
	if visited {
		t.Error("a redirect was followed")
	}
}
