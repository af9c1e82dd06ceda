package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

const page = "../../../../docs/reference/scheduler-configuration.md"

// fields returns the paths of all fields of a type of the file, and a value of each.
func fields(t reflect.Type, path string) map[string]any {
	switch {
	case t == reflect.TypeFor[runtime.RawExtension]():
		return map[string]any{path: map[string]any{"a": 1}}
	case strings.HasPrefix(t.PkgPath(), "k8s.io/api/"), t.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1":
		return map[string]any{path: "1s"}
	case t.Kind() == reflect.Pointer:
		return fields(t.Elem(), path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return fields(t.Elem(), path+"[0]")
	case t.Kind() == reflect.Struct:
		out := map[string]any{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Name == "TypeMeta":
			case name == "":
				for p, v := range fields(f.Type, path) {
					out[p] = v
				}
			default:
				for p, v := range fields(f.Type, strings.TrimPrefix(path+"."+name, ".")) {
					out[p] = v
				}
			}
		}
		return out
	case t.Kind() == reflect.Bool:
		return map[string]any{path: true}
	case t.Kind() == reflect.String || t.Kind() == reflect.Slice:
		return map[string]any{path: "eA=="}
	default:
		return map[string]any{path: 7}
	}
}

// document returns a file with a value at a path.
func document(path string, value any) []byte {
	steps := strings.Split(path, ".")
	for _, step := range slices.Backward(steps) {
		name, list := strings.CutSuffix(step, "[0]")
		if list {
			value = []any{value}
		}
		value = map[string]any{name: value}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		panic(err)
	}
	return append([]byte(head), text...)
}

// working are the fields that do what the API says, by the begin of their path; other tests show what.
var working = []string{"podInitialBackoffSeconds", "podMaxBackoffSeconds", "profiles[0].schedulerName",
	"profiles[0].pluginConfig[0].name", "profiles[0].pluginConfig[0].args", "profiles[0].plugins.multiPoint",
	"profiles[0].plugins.filter", "profiles[0].plugins.score", "profiles[0].plugins.queueSort",
	"profiles[0].plugins.bind", "profiles[0].plugins.postFilter", "extenders[0]"}

// What the API defines either works, is refused with its path, or is named in the log with its path.
func TestNoFieldGoesUnseen(t *testing.T) {
	for path, value := range fields(reflect.TypeFor[schedulerv1.KubeSchedulerConfiguration](), "") {
		if slices.ContainsFunc(working, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			continue
		}
		c, err := Parse(document(path, value))
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), path[:strings.LastIndex(path, ".")+1]):
			t.Errorf("%s: %v: does not give the path of the field", path, err)
		case err == nil && !slices.ContainsFunc(c.Unused, func(text string) bool {
			at, reason, _ := strings.Cut(text, ": ")
			return strings.HasPrefix(path, at) && reason != ""
		}):
			t.Errorf("%s: it is neither refused nor named, but %q", path, c.Unused)
		}
	}
}

// The page names every field, every plugin and every argument.
func TestThePageNamesAll(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	named := func(what string) {
		if !strings.Contains(string(text), what) {
			t.Errorf("%s does not name %s", page, what)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[schedulerv1.KubeSchedulerConfiguration](),
		reflect.TypeFor[preemptionArgs](), reflect.TypeFor[schedulerv1.InterPodAffinityArgs](),
		reflect.TypeFor[schedulerv1.NodeAffinityArgs](), reflect.TypeFor[schedulerv1.NodeResourcesFitArgs](),
		reflect.TypeFor[schedulerv1.NodeResourcesBalancedAllocationArgs](),
		reflect.TypeFor[schedulerv1.PodTopologySpreadArgs](), reflect.TypeFor[schedulerv1.VolumeBindingArgs](),
	} {
		for path := range fields(of, "") {
			for step := range strings.SplitSeq(path, ".") {
				named(strings.TrimSuffix(step, "[0]"))
			}
		}
	}
	for _, r := range catalog() {
		named(r.Name)
	}
	for _, name := range append(slices.Clone(fixed), preemption) {
		named(name)
	}
	for name := range absent {
		named(name)
	}
}

// The example of the page is read as it stands.
func TestThePageHasAnExample(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	c, err := Parse([]byte(example))
	if err != nil || !found {
		t.Fatalf("found %t: %v", found, err)
	}
	if got := fmt.Sprint(c.Profiles[0].Name, " ", c.Profiles[1].Name, " ", c.Profiles[1].Preempts, " ",
		len(c.Extenders), " ", c.Backoff.Max, c.Unused); got != "default-scheduler dense false 1 30s []" {
		t.Errorf("it is read as %s", got)
	}
	want := strings.Replace(strings.Replace(all, "NodeResourcesFit=1", "NodeResourcesFit=5", 1),
		"NodeResourcesBalancedAllocation=1 ", "", 1)
	if got := weights(c.Profiles[1]); got != want {
		t.Errorf("the profile dense is %s, want %s", got, want)
	}
}

// What is known elsewhere and is not here may be named, and the log says so.
func TestPluginsThatAreNotHere(t *testing.T) {
	c, err := Parse([]byte(head + `profiles:
- plugins:
    multiPoint:
      disabled: [{name: '*'}, {name: DeferredPodScheduling}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}, {name: NodeDeclaredFeatures, weight: 1}]
    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: PrioritySort}]}
    preScore: {disabled: [{name: '*'}]}
  pluginConfig: [{name: DeferredPodScheduling, args: {any: 1s}}, {name: DefaultBinder, args: {}},
    {name: DefaultPreemption, args: {minCandidateNodesAbsolute: 1}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"profiles[0].pluginConfig[0]: there is no plugin DeferredPodScheduling here, no Pod is preempted " +
			"for one that is resized",
		"profiles[0].pluginConfig[2].args: minCandidateNodesPercentage and minCandidateNodesAbsolute bound nothing, " +
			"every node is considered",
		"profiles[0].plugins.multiPoint.disabled[1]: there is no plugin DeferredPodScheduling here, no Pod " +
			"is preempted for one that is resized",
		"profiles[0].plugins.multiPoint.enabled[3]: there is no plugin NodeDeclaredFeatures here, nodes declare no " +
			"features",
		"profiles[0].plugins.preScore: a plugin is on wherever it is on at filter or score",
	}
	if !slices.Equal(c.Unused, want) {
		t.Errorf("without effect are %q, want %q", c.Unused, want)
	}
	if got := weights(c.Profiles[0]); got != "NodeName!" || c.Profiles[0].Preempts {
		t.Errorf("the profile is %s", got)
	}
}
