package taintnodesbycondition

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

func taints(list ...string) []corev1.Taint {
	var out []corev1.Taint
	for i := 0; i < len(list); i += 2 {
		out = append(out, corev1.Taint{Key: list[i], Effect: corev1.TaintEffect(list[i+1])})
	}
	return out
}

func TestDecide(t *testing.T) {
	const key = "node.kubernetes.io/not-ready"
	for name, row := range map[string]struct{ have, want []corev1.Taint }{
		"none":                {nil, taints(key, "NoSchedule")},
		"its own":             {taints("mine", "NoExecute"), taints("mine", "NoExecute", key, "NoSchedule")},
		"it is there":         {taints(key, "NoSchedule"), taints(key, "NoSchedule")},
		"with another effect": {taints(key, "NoExecute"), taints(key, "NoExecute", key, "NoSchedule")},
		"with a value": {[]corev1.Taint{{Key: key, Value: "x", Effect: "NoSchedule"}},
			[]corev1.Taint{{Key: key, Value: "x", Effect: "NoSchedule"}}},
	} {
		got := decide(row.have)
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if again := decide(got); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: a second pass makes it %v", name, again)
		}
	}
}

// Only a Node itself that is new is tainted: one that changes may have lost the taint since.
func TestAdmit(t *testing.T) {
	plugins := admission.NewPlugins()
	Register(plugins)
	plugin, err := plugins.InitPlugin(PluginName, nil, admission.PluginInitializers{})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		operation   admission.Operation
		subresource string
		want        int
	}{
		"created": {admission.Create, "", 1}, "changed": {admission.Update, "", 0},
		"a subresource": {admission.Create, "proxy", 0},
	} {
		node := &corev1.Node{}
		a := admission.NewAttributesRecord(node, nil, schema.GroupVersionKind{}, "", "n",
			corev1.SchemeGroupVersion.WithResource("nodes"), row.subresource, row.operation, nil, false, nil)
		if plugin.Handles(row.operation) {
			if err := plugin.(admission.MutationInterface).Admit(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(node.Spec.Taints) != row.want {
			t.Errorf("%s: %v", name, node.Spec.Taints)
		}
	}
}
