package scenario

import (
	"regexp"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// rights are the rights of an account in its namespace.
const rights = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NAMESPACE}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [settings], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: NAMESPACE}]
`

// DiscoveryAndAccessReview asks the mesh what it serves, what the fields mean, and who may do what.
func DiscoveryAndAccessReview(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.Kubectl("create", "serviceaccount", "reader")
	for range 2 {
		expectPrinted(w,
			w.TryKubectl(strings.ReplaceAll(rights, "NAMESPACE", w.Namespace), "auth", "reconcile", "-f", "-"),
			"role.rbac.authorization.k8s.io/reader reconciled\nrolebinding.rbac.authorization.k8s.io/reader reconciled")
	}
	as := "--as=system:serviceaccount:" + w.Namespace + ":reader"
	for _, row := range []struct {
		question, want string
		code           int
	}{
		{"get deployments", "yes", 0}, {"get deployments.apps --subresource=scale", "yes", 0},
		{"delete deployments", "no", 1}, {"get pods", "no", 1}, {"get deployments -A", "no", 1},
		{"update configmaps/settings", "yes", 0}, {"update configmaps/others", "no", 1},
		{"get /version", "yes", 0}, {"get /metrics", "no", 1},
	} {
		r := w.TryKubectl("", append([]string{"auth", "can-i", as}, strings.Fields(row.question)...)...)
		if strings.TrimSpace(r.Stdout) != row.want || r.Code != row.code {
			t.Errorf("auth can-i %s: status %d, %q, %q; want %q", row.question, r.Code, r.Stdout, r.Stderr, row.want)
		}
	}
	for _, row := range []struct{ command, want string }{
		{"auth can-i --list " + as, `(?s)^Resources +Non-Resource URLs +Resource Names +Verbs\n.*` +
			`deployments.apps/scale +\[\] +\[\] +\[get list\]\n.*configmaps +\[\] +\[settings\] +\[update\]\n` +
			`|(?s)^Resources .*configmaps +\[\] +\[settings\] +\[update\]\n.*deployments.apps/scale +\[\] +\[\] +\[get list\]\n`},
		{"auth whoami " + as, `(?m)^Username +system:serviceaccount:` + w.Namespace + `:reader *$`},
		{"auth can-i get pods --as=ann --as-group=system:masters", `^yes\n$`},
		{"api-versions", `(?s)^admissionregistration|^apiregistration.k8s.io/v1\napps/v1\n.*\nbatch/v1\n.*\nv1\n$`},
		{"api-resources --namespaced=false -o name", `(?m)^nodes$`},
		{"api-resources --api-group=apps --no-headers --sort-by=name", `^controllerrevisions +apps/v1 +true +` +
			`ControllerRevision *\ndaemonsets +ds +apps/v1 +true +DaemonSet *\ndeployments +deploy +apps/v1 +true +` +
			`Deployment *\nreplicasets +rs +apps/v1 +true +ReplicaSet *\nstatefulsets +sts +apps/v1 +true +StatefulSet *\n$`},
		{"api-resources --categories=all -o name", `(?m)^cronjobs.batch$`},
		{"api-resources --verbs=create,!list -o name", ``},
		{"explain deployment.spec.strategy", `(?s)GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n\n` +
			`FIELD: strategy <DeploymentStrategy>.*rollingUpdate\t<RollingUpdateDeployment>.*type\t<string>`},
		{"explain cronjobs.spec", `schedule\t<string> -required-`},
		{"explain hpa --api-version=autoscaling/v1 --recursive", `targetCPUUtilizationPercentage\t<integer>`},
		{"version", `(?m)^Server Version: v1\.`},
		{"cluster-info", `is running at .*https://`},
		{"get --raw /readyz", `^ok$`},
	} {
		if out := w.Kubectl(strings.Fields(row.command)...); !regexp.MustCompile(row.want).MatchString(out) {
			t.Errorf("kubectl %s prints\n%swant %s", row.command, out, row.want)
		}
	}
	w.refuses("", []string{`field "nothing" does not exist`}, "explain", "pod.spec.nothing")
	w.refuses("", []string{`the server doesn't have a resource type "nothings"`}, "get", "nothings")
	w.refuses("", []string{`cannot list resource "pods" in API group "" in the namespace "` + w.Namespace + `"`}, "get",
		"pods", as)
}
