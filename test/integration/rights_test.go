package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	podgc "keelson.dev/services/podgc/inproc"
	scheduler "keelson.dev/services/scheduler/inproc"
	workloads "keelson.dev/services/workload-controllers/inproc"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/inprocess"
)

// TestRolesGrantWhatIsDeclared: the ClusterRoles that an apiserver makes grant each daemon what it declares, and
// nothing else. That nothing else is asked for is what the guarded mesh of TestScenarios shows.
func TestRolesGrantWhatIsDeclared(t *testing.T) {
	m := inprocess.New(t, inprocess.Options{Without: []mesh.Daemon{mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC,
		mesh.NodeAgent}})
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	for role, declared := range map[string][]rbacv1.PolicyRule{
		"system:kube-scheduler":               scheduler.Rules(),
		"system:keelson:workload-controllers": workloads.Rules(),
		"system:keelson:podgc":                podgc.Rules(),
	} {
		granted, err := client.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
		if err != nil {
			t.Errorf("reading the role: %v", err)
			continue
		}
		for _, right := range beyond(rights(granted.Rules), rights(declared)) {
			t.Errorf("%s grants what nobody declares: %v", role, right)
		}
		for _, right := range beyond(rights(declared), rights(granted.Rules)) {
			t.Errorf("%s does not grant: %v", role, right)
		}
	}
}

// right is one verb on one resource. Names are those that it is bounded to, none for all.
type right struct{ verb, resource, group, names string }

// rights spells the rules out.
func rights(rules []rbacv1.PolicyRule) []right {
	var all []right
	for _, rule := range rules {
		names := strings.Join(slices.Sorted(slices.Values(rule.ResourceNames)), " ")
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{verb, resource, group, names})
				}
			}
		}
	}
	return all
}

// beyond returns the rights that the others do not cover. The apiserver confines these roles: what they may do to all
// resources they may not do to subresources, and what they patch there are finalizers and owners alone.
func beyond(rights, others []right) []right {
	return slices.DeleteFunc(rights, func(r right) bool {
		return slices.Contains(others, r) ||
			!strings.Contains(r.resource, "/") && (r.verb != "patch" || r.resource == "*") &&
				slices.Contains(others, right{r.verb, "*", "*", ""})
	})
}

// TestHelmChartGrantsNoExtraRights: it binds the daemons to the roles that the apiserver keeps. CoreDNS, which is none
// of them, may read what it answers from.
func TestHelmChartGrantsNoExtraRights(t *testing.T) {
	bound := map[string]bool{}
	for _, daemon := range []string{"scheduler", "workload-controllers", "podgc"} {
		file := filepath.Join("../../deploy/helm/keelson/charts", daemon, "templates", daemon+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, role, _ := strings.Cut(string(text), `"clusterRole" "`)
		role, _, _ = strings.Cut(role, `"`)
		bound[role] = true
	}
	for _, role := range []string{"system:kube-scheduler", "system:keelson:workload-controllers",
		"system:keelson:podgc"} {
		if !bound[role] {
			t.Errorf("the chart does not bind %s", role)
		}
	}
	files, err := filepath.Glob("../../deploy/helm/keelson/charts/*/templates/*")
	if err != nil || len(files) < 4 {
		t.Fatalf("the templates are %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasSuffix(file, "coredns.yaml") {
				if verbs, ok := strings.CutPrefix(strings.TrimSpace(line), "verbs: "); ok && verbs != "[list, watch]" {
					t.Errorf("%s grants %s", file, verbs)
				}
				continue
			}
			if kind := strings.TrimSpace(line); kind == "kind: ClusterRole" && !strings.HasPrefix(line, " ") ||
				kind == "kind: Role" || kind == "rules:" {
				t.Errorf("%s holds rights of its own: %s", file, kind)
			}
		}
	}
}
