package daemonset

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodOfANode(t *testing.T) {
	set := newSet(affine(byLabel("disk", corev1.NodeSelectorOpExists), byName(corev1.NodeSelectorOpNotIn, "n9")))
	set.Spec.Template.Annotations = map[string]string{"note": "x"}
	set.Spec.Template.Finalizers = []string{"test.keelson.dev/hold"}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"os": "linux"}
	set.Spec.Template.Spec.SchedulerName = "mine"
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: byLabel("zone",
		corev1.NodeSelectorOpExists)}}
	apart := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname}}}
	set.Spec.Template.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred
	set.Spec.Template.Spec.Affinity.PodAntiAffinity = apart
	before := set.DeepCopy()

	pod := ForNode(Prototype(set, "abc"), "target-host-name")
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if want := (&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.
		NodeSelectorRequirement{{Key: "metadata.name", Operator: "In",
		Values:                     []string{"target-host-name"}}}}}}); !reflect.
		DeepEqual(required, want) { // SET-129, SET-130, SET-131
		t.Errorf("required is %+v, want %+v", required, want)
	}
	if !reflect.DeepEqual(pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, preferred) ||
		!reflect.DeepEqual(pod.Spec.Affinity.PodAntiAffinity, apart) { // SET-132
		t.Errorf("affinity %+v", pod.Spec.Affinity)
	}
	if pod.Spec.NodeName != "" { // SET-133
		t.Errorf("bound to %s", pod.Spec.NodeName)
	}
	if pod.Spec.SchedulerName != "mine" { // SET-136
		t.Errorf("scheduler %s", pod.Spec.SchedulerName)
	}
	if want := map[string]string{"app": "agent", "controller-revision-hash": "abc",
		"pod-template-generation": "2"}; !maps.Equal(pod.Labels, want) { // SET-158
		t.Errorf("labels %v, want %v", pod.Labels, want)
	}
	if pod.GenerateName != "agent-" || pod.Annotations["note"] != "x" || len(pod.Finalizers) != 1 ||
		pod.Spec.NodeSelector["os"] != "linux" {
		t.Errorf("Pod %+v", pod)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "DaemonSet" || owner.UID != set.UID {
		t.Errorf("owner %+v", owner)
	}
	if !reflect.DeepEqual(before, set) {
		t.Error("the DaemonSet changed")
	}
	if got := nodeOf(pod); got != "target-host-name" {
		t.Errorf("the Pod is read as meant for %q", got)
	}
}

func TestNodeOf(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   string
	}{
		"without affinity":    {func(*appsv1.DaemonSet) {}, ""},
		"bound":               {spec(func(spec *corev1.PodSpec) { spec.NodeName = "n1" }), "n1"},
		"only preferring":     {spec(func(spec *corev1.PodSpec) { spec.Affinity = &corev1.Affinity{} }), ""},
		"by labels":           {affine(byLabel("disk", corev1.NodeSelectorOpExists)), ""},
		"any node but one":    {affine(byName(corev1.NodeSelectorOpNotIn, "n1")), ""},
		"either of two nodes": {affine(byName(corev1.NodeSelectorOpIn, "n1", "n2")), ""},
		"the second term":     {affine(byLabel("a", "Exists"), byName(corev1.NodeSelectorOpIn, "n2")), "n2"},
	} {
		set := newSet(c.change)
		if got := nodeOf(&corev1.Pod{Spec: set.Spec.Template.Spec}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTolerations(t *testing.T) {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: "node.kubernetes.io/" + key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	table := []corev1.Toleration{
		exists("not-ready", corev1.TaintEffectNoExecute),        // SET-137
		exists("unreachable", corev1.TaintEffectNoExecute),      // SET-138
		exists("disk-pressure", corev1.TaintEffectNoSchedule),   // SET-139
		exists("memory-pressure", corev1.TaintEffectNoSchedule), // SET-140
		exists("pid-pressure", corev1.TaintEffectNoSchedule),    // SET-141
		exists("unschedulable", corev1.TaintEffectNoSchedule),   // SET-142
		exists("not-ready", corev1.TaintEffectNoSchedule),       // SET-147
		exists("unreachable", corev1.TaintEffectNoSchedule),     // SET-147
	}
	network := exists("network-unavailable", corev1.TaintEffectNoSchedule)
	minute := int64(60)
	limited := table[0]
	limited.TolerationSeconds = &minute
	own := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}
	equal := corev1.Toleration{Key: table[1].Key, Operator: corev1.TolerationOpEqual, Effect: table[1].Effect}
	for _, c := range []struct {
		name string
		spec corev1.PodSpec
		want []corev1.Toleration
	}{
		{"the table", corev1.PodSpec{}, table},
		{"SET-143 of the host's network", corev1.PodSpec{HostNetwork: true}, append(slices.Clone(table), network)},
		{"SET-145 the template's own stay", corev1.PodSpec{Tolerations: []corev1.Toleration{own}},
			append([]corev1.Toleration{own}, table...)},
		{"SET-144 one of the table's takes the place of one that is limited", corev1.PodSpec{
			Tolerations: []corev1.Toleration{own, limited}}, append([]corev1.Toleration{own}, table...)},
		{"SET-144 one with another operator is another", corev1.PodSpec{Tolerations: []corev1.Toleration{equal}},
			append([]corev1.Toleration{equal}, table...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.spec.DeepCopy()
			got := tolerations(&c.spec)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if !reflect.DeepEqual(before, &c.spec) || len(automatic) != 8 {
				t.Error("the template or the table changed")
			}
		})
	}
}
