package e2e

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// Everything that Keelson itself runs in Pods holds to the level restricted of the Pod Security Standards.
func TestSystemPodsMeetRestrictedLevel(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := rendered(t, "--set", "coredns.enabled=true,coredns.clusterIP=10.96.0.10")
	manifest, err := os.ReadFile(filepath.Join("..", "..", "cli", "internal", "sample", "hello.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hello := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(manifest, hello); err != nil {
		t.Fatal(err)
	}
	ours[hello.Name] = hello
	for _, name := range []string{"coredns", "hello", "keelson-podgc", "keelson-scheduler",
		"keelson-workload-controllers"} {
		d, ok := ours[name]
		if !ok {
			t.Errorf("there is no Deployment %s", name)
			continue
		}
		template := &d.Spec.Template
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		found := policy.AggregateCheckResults(checks.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
		if !found.Allowed {
			t.Errorf("%s: %s", name, found.ForbiddenDetail())
		}
	}
}
