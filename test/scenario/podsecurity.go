package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// PodSecurityAdmission labels a namespace, and shows what kubectl prints of it: which Pods would be refused now, which
// template makes Pods that are refused, and why a Pod is.
func PodSecurityAdmission(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.Kubectl("run", "before", "--image="+HelloV1)
	label := []string{"label", "namespace", w.Namespace, "pod-security.kubernetes.io/enforce=restricted"}
	for _, args := range [][]string{append(label, "--dry-run=server"), label} {
		expectPrinted(w, w.TryKubectl("", args...), "namespace/"+w.Namespace+" labeled",
			`Warning: existing pods in namespace "`+w.Namespace+`" violate the new PodSecurity enforce level `+
				`"restricted:latest"`,
			"Warning: before: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, "+
				"seccompProfile")
	}
	// Who decides reads namespaces from a watch, which the answer to a write does not wait for.
	w.Await("the label to be known", func() Answer {
		r := w.TryKubectl(web(1, HelloV1, ""), "apply", "--dry-run=server", "-f", "-")
		if !strings.Contains(r.Stderr, "would violate PodSecurity") {
			return Saw(r.Stdout + r.Stderr)
		}
		return ""
	})
	expectPrinted(w, w.TryKubectl(web(1, HelloV1, ""), "apply", "-f", "-"), "deployment.apps/web created",
		`Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "`,
		"must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container")
	w.awaitOutput([]string{"FailedCreate", `violates PodSecurity "restricted:latest"`}, "get", "events")
	for _, dry := range []string{"none", "server"} {
		refused := w.TryKubectl("", "run", "refused", "--image="+HelloV1, "--dry-run="+dry)
		if want := `Error from server (Forbidden): pods "refused" is forbidden: violates PodSecurity ` +
			`"restricted:latest": allowPrivilegeEscalation != false (container "refused" must set ` +
			`securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "refused" must set ` +
			`securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "refused" must set ` +
			`securityContext.runAsNonRoot=true), seccompProfile (pod or container "refused" must set ` +
			`securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`; refused.Code != 1 ||
			strings.TrimSpace(refused.Stderr) != want {
			t.Errorf("--dry-run=%s: status %d, %q\nwant %q", dry, refused.Code, refused.Stderr, want)
		}
	}
	wrong := w.TryKubectl("", "label", "namespace", w.Namespace, "--overwrite",
		"pod-security.kubernetes.io/enforce=strict")
	if wrong.Code != 1 || !strings.Contains(wrong.Stderr, `must be one of privileged, baseline, restricted`) {
		t.Errorf("a level that there is not: status %d, %q", wrong.Code, wrong.Stderr)
	}
	w.Kubectl("label", "namespace", w.Namespace, "pod-security.kubernetes.io/enforce-")
	w.AwaitAvailable("web", 1)
}

// expectPrinted checks that kubectl printed the line and these warnings.
func expectPrinted(w *World, r Result, line string, warnings ...string) {
	w.Helper()
	if r.Code != 0 || strings.TrimSpace(r.Stdout) != line && !strings.HasPrefix(r.Stdout, line+" ") {
		w.Errorf("status %d, %q, want %q", r.Code, r.Stdout, line)
	}
	for _, warning := range warnings {
		if !strings.Contains(r.Stderr, warning) {
			w.Errorf("%q is not in what was printed:\n%s", warning, r.Stderr)
		}
	}
}
