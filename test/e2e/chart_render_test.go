package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
)

// TestHelmChartValues shows what each value changes, and nothing else.
func TestHelmChartValues(t *testing.T) {
	if out, stderr, err := helm(t, "", "lint", "--strict", chart(t)); err != nil {
		t.Errorf("helm lint: %v\n%s%s", err, out, stderr)
	}
	defaults := rendered(t)
	if got := slices.Sorted(maps.Keys(defaults)); !slices.Equal(got, []string{"keelson-podgc", "keelson-scheduler",
		"keelson-workload-controllers"}) {
		t.Fatalf("the Deployments are %v", got)
	}
	for name, d := range defaults {
		c := d.Spec.Template.Spec.Containers[0]
		if want := "keelson.dev/" + strings.TrimPrefix(name, "keelson-") + ":dev"; c.Image != want ||
			ptr.Deref(d.Spec.Replicas, 0) != 1 || d.Namespace != system {
			t.Errorf("%s/%s runs %d of %s, want 1 of %s in %s", d.Namespace, name, ptr.Deref(d.Spec.Replicas, 0),
				c.Image, want, system)
		}
		if s := c.SecurityContext; !ptr.Deref(s.ReadOnlyRootFilesystem, false) ||
			!ptr.Deref(d.Spec.Template.Spec.SecurityContext.RunAsNonRoot, false) {
			t.Errorf("%s may write its root or run as root", name)
		}
	}
	changed := rendered(t, "--set",
		"scheduler.image.tag=v2,scheduler.replicas=3,scheduler.logLevel=debug,scheduler.resources.limits.memory=1Gi",
		"--set",
		"scheduler.nodeSelector.disk=ssd,scheduler.tolerations[0].operator=Exists,scheduler.extraArgs[0]=--profiling",
		"--set", "podgc.enabled=false,global.apiserver.host=192.0.2.1,global.apiserver.port=6443")
	if _, ok := changed["keelson-podgc"]; ok {
		t.Error("podgc.enabled=false leaves it in")
	}
	s := changed["keelson-scheduler"]
	if s == nil {
		t.Fatal("there is no scheduler")
	}
	pod := s.Spec.Template.Spec
	c := pod.Containers[0]
	got := fmt.Sprintf("%s %d %s %v %s %v", c.Image, *s.Spec.Replicas, c.Resources.Limits.Memory(), pod.NodeSelector,
		pod.Tolerations[0].Operator, c.Env)
	if want := "keelson.dev/scheduler:v2 3 1Gi map[disk:ssd] Exists [{KUBERNETES_SERVICE_HOST 192.0.2.1 nil} " +
		"{KUBERNETES_SERVICE_PORT 6443 nil}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, arg := range []string{"--log-level=debug", "--profiling"} {
		if !slices.Contains(c.Args, arg) {
			t.Errorf("%s is not in %q", arg, c.Args)
		}
	}
	image := changed["keelson-workload-controllers"].Spec.Template.Spec.Containers[0].Image
	if image != "keelson.dev/workload-controllers:dev" {
		t.Errorf("the scheduler's tag changed the controllers' image to %s", image)
	}
}

// TestHelmChartSpreadsReplicas: what places replicas, and keeps them through a drain, is about the Pods of the daemon
// and release, and absent where no value asks for it.
func TestHelmChartSpreadsReplicas(t *testing.T) {
	render := func(args ...string) (*appsv1.Deployment, []*policyv1.PodDisruptionBudget) {
		out, stderr, err := helm(t, "", append([]string{"template", "keelson", chart(t)}, args...)...)
		if err != nil {
			t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
		}
		budgets := slices.DeleteFunc(decoded[policyv1.PodDisruptionBudget](t, out),
			func(b *policyv1.PodDisruptionBudget) bool { return b.Kind != "PodDisruptionBudget" })
		return rendered(t, args...)["keelson-podgc"], budgets
	}
	d, budgets := render()
	pod := d.Spec.Template.Spec
	if len(budgets) != 0 || pod.TopologySpreadConstraints != nil || d.Spec.Strategy.RollingUpdate != nil ||
		pod.PriorityClassName != "system-cluster-critical" ||
		len(pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("by default there are %d budgets, and Pods %+v", len(budgets), pod)
	}
	const zone = "podgc.topologySpreadConstraints[0]."
	d, budgets = render("--set", "podgc.podDisruptionBudget.enabled=true,podgc.antiAffinity=required",
		"--set", "podgc.priorityClassName=mine", "--set", zone+"topologyKey=zone,"+zone+"maxSkew=2",
		"--set", zone+"whenUnsatisfiable=DoNotSchedule")
	own, pod := d.Spec.Selector.MatchLabels, d.Spec.Template.Spec
	if len(budgets) != 1 || budgets[0].Namespace != system || budgets[0].Spec.MaxUnavailable.IntValue() != 1 ||
		!maps.Equal(budgets[0].Spec.Selector.MatchLabels, own) {
		t.Errorf("the budgets are %+v, want one of %v", budgets, own)
	}
	apart := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || !maps.Equal(apart[0].LabelSelector.MatchLabels, own) ||
		d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() != 0 || pod.PriorityClassName != "mine" {
		t.Errorf("Pods keep apart by %+v and are rolled by %+v", apart, d.Spec.Strategy.RollingUpdate)
	}
	if spread := pod.TopologySpreadConstraints; len(spread) != 1 || spread[0].TopologyKey != "zone" ||
		spread[0].MaxSkew != 2 || spread[0].WhenUnsatisfiable != corev1.DoNotSchedule ||
		!maps.Equal(spread[0].LabelSelector.MatchLabels, own) {
		t.Errorf("Pods are spread by %+v", spread)
	}
	if d, _ := render("--set", "podgc.antiAffinity=none"); d.Spec.Template.Spec.Affinity != nil {
		t.Errorf("none leaves %+v", d.Spec.Template.Spec.Affinity)
	}
}

// TestHelmReleasesShareNothing renders two releases that run controllers of their own: no object of one is the other's,
// and neither selects the other's Pods.
func TestHelmReleasesShareNothing(t *testing.T) {
	objects := map[string]string{}
	for release, args := range map[string][]string{
		"keelson": {"--set", "workload-controllers.controllers={*,-job,-cronjob}"},
		"jobs":    {"--set", "workload-controllers.controllers={job,cronjob}"},
	} {
		out, stderr, err := helm(t, "", append([]string{"template", release, chart(t)}, args...)...)
		if err != nil {
			t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
		}
		seen := 0
		for _, o := range decoded[metav1.PartialObjectMetadata](t, out) {
			name := fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
			if other, taken := objects[name]; taken {
				t.Errorf("%s is of %s and %s", name, other, release)
			}
			objects[name] = release
			seen++
		}
		if seen != 12 {
			t.Errorf("%s has %d objects, want an account, a binding, a Deployment and a test of three daemons", release,
				seen)
		}
		for _, d := range decoded[appsv1.Deployment](t, out) {
			if d.Kind != "Deployment" {
				continue
			}
			if got := d.Spec.Selector.MatchLabels["app.kubernetes.io/instance"]; got != release {
				t.Errorf("%s selects Pods of release %q", d.Name, got)
			}
		}
	}
	args := rendered(t, "--set", "workload-controllers.controllers={*,-job,-cronjob}")["keelson-workload-controllers"].
		Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--controllers=*,-job,-cronjob") {
		t.Errorf("the daemon is started with %q", args)
	}
}

// TestHelmChartRefusesInvalidValues: one sentence names the value and what it must be.
func TestHelmChartRefusesInvalidValues(t *testing.T) {
	for value, want := range map[string]string{
		"scheduler.replicas=many": "at '/scheduler/replicas': got string, want integer",
		"podgc.replicas=-1":       "at '/podgc/replicas': minimum: got -1, want 0",
		"workload-controllers.logLevel=loud": "at '/workload-controllers/logLevel': value must be one of 'debug', " +
			"'info', 'warn', 'error'",
		"scheduler.replica=2": "at '/scheduler': additional properties 'replica' not allowed",
		"sheduler.replicas=2": "at '': additional properties 'sheduler' not allowed",
		"workload-controllers.controllers={job,Job}": "at '/workload-controllers/controllers/1': 'Job' does not " +
			"match pattern",
		"podgc.antiAffinity=some": "at '/podgc/antiAffinity': value must be one of 'preferred', 'required', 'none'",
		"podgc.podDisruptionBudget.maxUnavailable=-1": "at '/podgc/podDisruptionBudget/maxUnavailable': minimum: " +
			"got -1, want 0",
		"scheduler.topologySpreadConstraints[0].maxSkew=1": "at '/scheduler/topologySpreadConstraints/0': missing " +
			"properties 'topologyKey', 'whenUnsatisfiable'",
		"scheduler.controllers={job}":       "at '/scheduler/controllers': false schema",
		"monitoring.podMonitor=true":        "at '/monitoring/podMonitor': got boolean, want object",
		"monitoring.interval=often":         "at '/monitoring/interval': 'often' does not match pattern",
		"monitoring.rules.runbooks=docs":    "at '/monitoring/rules/runbooks': 'docs' does not match pattern",
		"monitoring.dashboard.enabled=true": "at '/monitoring': additional properties 'dashboard' not allowed",
		"global.apiserver.port=0":           "at '/global/apiserver/port': minimum: got 0, want 1",
	} {
		t.Run(value, func(t *testing.T) {
			_, stderr, err := helm(t, "", "template", "keelson", chart(t), "--set", value)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(stderr, want) || strings.Count(stderr, "- at ") != 1 {
				t.Errorf("got  %s\nwant %s", stderr, want)
			}
		})
	}
}

// rendered returns the chart's Deployments by name.
func rendered(t *testing.T, args ...string) map[string]*appsv1.Deployment {
	t.Helper()
	out, stderr, err := helm(t, "", append([]string{"template", "keelson", chart(t)}, args...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
	}
	deployments := map[string]*appsv1.Deployment{}
	for _, d := range decoded[appsv1.Deployment](t, out) {
		if d.Kind == "Deployment" {
			deployments[d.Name] = d
		}
	}
	return deployments
}

// decoded are the objects that helm template printed, of all kinds as if they were of one.
func decoded[T any](t *testing.T, out string) (objects []*T) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), len(out))
	for {
		object := new(T)
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("reading what helm template printed: %v\n%s", err, out)
		}
		objects = append(objects, object)
	}
}
