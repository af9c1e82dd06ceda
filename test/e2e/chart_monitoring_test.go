package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// monitored renders the objects of the sub-chart monitoring alone, by kind and name.
func monitored(t *testing.T, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	out, stderr, err := helm(t, "", append([]string{"template", "keelson", chart(t), "--set",
		"scheduler.enabled=false,workload-controllers.enabled=false,podgc.enabled=false"}, args...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, o := range decoded[unstructured.Unstructured](t, out) {
		if o.Object != nil {
			objects[o.GetKind()+" "+o.GetName()] = o
		}
	}
	return objects
}

// TestHelmChartMonitoring: each switch makes its own objects, and without one there are none.
func TestHelmChartMonitoring(t *testing.T) {
	files := func(pattern string) (names []string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(chart(t), "charts", "monitoring", pattern))
		must(t, err)
		for _, file := range found {
			names = append(names, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		}
		return names
	}
	var rules, dashboards []string
	for _, name := range files("rules/*.yaml") {
		rules = append(rules, "PrometheusRule keelson-"+name)
	}
	for _, name := range files("dashboards/*.json") {
		dashboards = append(dashboards, "ConfigMap keelson-dashboard-"+name)
	}
	for value, want := range map[string][]string{
		"monitoring.interval=1m":                   nil,
		"monitoring.podMonitor.enabled=true":       {"PodMonitor keelson-daemons"},
		"monitoring.apiserverMonitor.enabled=true": {"ServiceMonitor keelson-apiserver"},
		"monitoring.nodeMonitor.enabled=true":      {"ServiceMonitor keelson-nodes"},
		"monitoring.rules.enabled=true":            rules,
		"monitoring.dashboards.enabled=true":       dashboards,
	} {
		got := monitored(t, "--set", value+",monitoring.labels.release=p")
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%s makes %q, want %q", value, names, want)
		}
		for name, o := range got {
			if o.GetNamespace() != system || o.GetLabels()["release"] != "p" ||
				o.GetLabels()["app.kubernetes.io/part-of"] != "keelson" {
				t.Errorf("%s is in %s with the labels %v", name, o.GetNamespace(), o.GetLabels())
			}
		}
	}
}

// TestHelmChartMonitorsSelectDaemons: the monitor selects the Pods of this release by the port that they have.
func TestHelmChartMonitorsSelectDaemons(t *testing.T) {
	const values = "monitoring.podMonitor.enabled=true,monitoring.podMonitor.clientCertificate=mine"
	monitor := monitored(t, "--set", values)["PodMonitor keelson-daemons"]
	if monitor == nil {
		t.Fatal("there is none")
	}
	selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	must(t, err)
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
	must(t, err)
	endpoint := endpoints[0].(map[string]any)
	if secret, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "keySecret", "name"); secret != "mine" {
		t.Errorf("the key is in the Secret %q", secret)
	}
	job, _, err := unstructured.NestedString(monitor.Object, "spec", "jobLabel")
	must(t, err)
	for name, d := range rendered(t) {
		pod := d.Spec.Template
		for label, value := range selected {
			if pod.Labels[label] != value {
				t.Errorf("%s does not have the label %s=%s", name, label, value)
			}
		}
		if pod.Labels[job] != name {
			t.Errorf("the job of %s would be %q", name, pod.Labels[job])
		}
		if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == endpoint["port"]
		}) {
			t.Errorf("%s has no port %s", name, endpoint["port"])
		}
	}
}

// TestHelmChartAlertRulesMatchFiles checks that the objects hold the tested rules, except for the links.
func TestHelmChartAlertRulesMatchFiles(t *testing.T) {
	const base = "https://example.com/keelson/"
	objects := monitored(t, "--set", "monitoring.rules.enabled=true,monitoring.dashboards.enabled=true",
		"--set", "monitoring.rules.runbooks="+base)
	dir := filepath.Join(chart(t), "charts", "monitoring")
	for name, o := range objects {
		kind, name, _ := strings.Cut(name, " keelson-")
		if kind == "ConfigMap" {
			file := strings.TrimPrefix(name, "dashboard-") + ".json"
			want, err := os.ReadFile(filepath.Join(dir, "dashboards", file))
			must(t, err)
			got, _, err := unstructured.NestedString(o.Object, "data", file)
			if err != nil || got != string(want) || !json.Valid([]byte(got)) {
				t.Errorf("the ConfigMap of %s holds something else: %v", file, err)
			}
			if o.GetLabels()["grafana_dashboard"] != "1" {
				t.Errorf("the ConfigMap of %s has the labels %v", file, o.GetLabels())
			}
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, "rules", name+".yaml"))
		must(t, err)
		linked := strings.ReplaceAll(string(content), "runbook_url: docs/", "runbook_url: "+base+"docs/")
		want, err := yaml.YAMLToJSON([]byte(linked))
		must(t, err)
		got, err := json.Marshal(o.Object["spec"])
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("the PrometheusRule of %s is\n%s\nthe file is\n%s", name, got, want)
		}
	}
}
