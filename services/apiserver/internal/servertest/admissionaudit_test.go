package servertest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// What a webhook notes about a request, and that it has changed it, stands in the audit log.
func TestWebhooksInTheAuditLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	h := startHooks(t, func(c *inproc.Config) {
		c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
		c.Audit.LogOptions.Path = path
	})
	ns := h.Namespace(t, "noted")
	h.mutate(
		t,
		ns,
		mutating(h.hook(ns, "notes", says(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			answer := patch(`[{"op":"add","path":"/data/b","value":"c"}]`)(r)
			answer.AuditAnnotations = map[string]string{"why": "because"}
			if r.Name == sentinel {
				return allow(r)
			}
			return answer
		}))),
	)
	if _, err := h.make(t, ns, "made", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} }); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the note", func(context.Context) string {
		for _, e := range readAudit(t, path) {
			if e.ObjectRef == nil || e.ObjectRef.Namespace != ns || e.ObjectRef.Name != "made" {
				continue
			}
			mutated := e.Annotations["mutation.webhook.admission.k8s.io/round_0_index_1"]
			if e.Annotations["notes.noted.example.com/why"] == "because" && mutated ==
				`{"configuration":"noted","webhook":"notes.noted.example.com","mutated":true}` {
				return ""
			}
			return fmt.Sprint(e.Annotations)
		}
		return "the write is not in the log"
	})
}
