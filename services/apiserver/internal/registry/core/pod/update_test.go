package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// frozen are changes that no update may make.
var frozen = []struct {
	name   string
	change func(*corev1.Pod)
}{
	{"a command", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh"} }},
	{"resources", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = quantities("cpu", "1")
	}},
	{"POD-055 an init container's command", func(p *corev1.Pod) { p.Spec.InitContainers[0].Command = []string{"sh"} }},
	{"a container's name", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" }},
	{"SAF-121 SAF-125 POD-026 the node", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }},
	{"POD-028 SAF-122 no node any more", func(p *corev1.Pod) { p.Spec.NodeName = "" }},
	{"SCH-021 the priority", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](1) }},
	{"SCH-021 the priority class", func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }},
	{"SCH-021 the preemption policy", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }},
	{"the restart policy", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }},
	{"the node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }},
	{"the grace period", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1) }},
	{"a volume", func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes,
			corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}},
	{"POD-257 SAF-010 SAF-011 an ephemeral container", func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "e"}}}
	}},
}

func TestValidateUpdateRefuses(t *testing.T) {
	for _, row := range frozen {
		t.Run("POD-051 "+row.name, func(t *testing.T) {
			old := nginx()
			p := old.DeepCopy()
			row.change(p)
			Default(p)
			errs := ValidateUpdate(p, old)
			if len(errs) != 1 {
				t.Fatalf("got %v, want one error", errs)
			}
			const sentence = "spec: Forbidden: pod updates may not change fields other than " +
				"`spec.containers[*].image`,`spec.initContainers[*].image`," +
				"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
				"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
			before, difference, found := strings.Cut(errs[0].Error(), sentence)
			if !found || before != "" {
				t.Fatalf("got %q", errs[0].Error())
			}
			if !strings.Contains(difference, "\n- ") && !strings.Contains(difference, "\n+ ") {
				t.Errorf("the difference shows no line that changed:\n%s", difference)
			}
		})
	}
}

// fill makes the Pod take the bytes, by its labels.
func fill(p *corev1.Pod, bytes int) {
	p.Labels = map[string]string{"filler": strings.Repeat("a", bytes-p.ObjectMeta.Size()-p.Spec.Size())}
	p.Labels["filler"] = p.Labels["filler"][p.ObjectMeta.Size()+p.Spec.Size()-bytes:]
}

func TestValidateUpdate(t *testing.T) {
	toleration := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](300)}
	const tolerations = `spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds`
	deadline := func(seconds *int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = seconds }
	}
	tolerate := func(tolerations ...corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = tolerations }
	}
	with := func(change func(*corev1.Toleration)) corev1.Toleration {
		c := *toleration.DeepCopy()
		change(&c)
		return c
	}
	nothing := func(*corev1.Pod) {}
	rows := []struct {
		name        string
		old, change func(*corev1.Pod)
		want        []string
	}{
		{"POD-047 nothing", nothing, nothing, nil},
		{"POD-051 an image", nothing, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }, nil},
		{"POD-051 POD-055 an init container's image", nothing,
			func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "busybox:2" }, nil},
		{"no image", nothing, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" },
			[]string{`spec.containers[0].image: Required value`}},
		{"SAF-003 one more container", nothing, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b", Image: "b"})
			Default(p)
		}, []string{`spec.containers: Forbidden: pod updates may not add or remove containers`}},
		{"SAF-003 one more init container", nothing, func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "b", Image: "b"})
			Default(p)
		}, []string{`spec.initContainers: Forbidden: pod updates may not add or remove containers`}},
		{"no init container any more", nothing, func(p *corev1.Pod) { p.Spec.InitContainers = nil },
			[]string{`spec.initContainers: Forbidden: pod updates may not add or remove containers`}},
		{"POD-053 a first deadline", nothing, deadline(ptr.To[int64](50)), nil},
		{"POD-054 unset to 0", nothing, deadline(ptr.To[int64](0)),
			[]string{`spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`}},
		{"POD-054 100 to 50", deadline(ptr.To[int64](100)), deadline(ptr.To[int64](50)), nil},
		{"POD-054 100 to 0", deadline(ptr.To[int64](100)), deadline(ptr.To[int64](0)), nil},
		{"POD-054 50 to 100", deadline(ptr.To[int64](50)), deadline(ptr.To[int64](100)),
			[]string{`spec.activeDeadlineSeconds: Invalid value: 100: must be less than or equal to previous value`}},
		{"POD-054 50 to -1", deadline(ptr.To[int64](50)), deadline(ptr.To[int64](-1)),
			[]string{`spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		{
			"POD-054 50 to unset",
			deadline(ptr.To[int64](50)),
			deadline(nil),
			[]string{
				`spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value`,
			},
		},
		{"POD-052 one more toleration", tolerate(toleration),
			tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}, toleration), nil},
		{"POD-052 a toleration less", tolerate(toleration), tolerate(), []string{tolerations}},
		{"POD-052 another effect", tolerate(toleration), tolerate(with(func(c *corev1.Toleration) { c.Effect = "" })),
			[]string{tolerations, "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when " +
				"`tolerationSeconds` is set"}},
		{"POD-052 another key", tolerate(toleration), tolerate(with(func(c *corev1.Toleration) { c.Key = "b" })),
			[]string{tolerations}},
		{"another time of a toleration", tolerate(toleration),
			tolerate(with(func(c *corev1.Toleration) { c.TolerationSeconds = ptr.To[int64](1) })), nil},
		{"a negative grace period becomes the shortest",
			func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](-5) },
			func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1) }, nil},
		{
			"DEP-183 a deletion cost",
			nothing,
			func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "x"} },
			[]string{
				`metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "x": must be a 32bit integer`,
			},
		},
		{"512 KiB", nothing, func(p *corev1.Pod) { fill(p, 512<<10) }, nil},
		{"one byte more", nothing, func(p *corev1.Pod) { fill(p, 512<<10+1) },
			[]string{`spec: Forbidden: metadata and spec of a Pod take at most 524288 bytes together, not 524289`}},
		{"too large, and a finalizer less", func(p *corev1.Pod) { fill(p, 600<<10); p.Finalizers = []string{"a/b"} },
			func(p *corev1.Pod) { p.Finalizers = nil; p.Annotations = map[string]string{"a": "b"} }, nil},
		{"too large as before", func(p *corev1.Pod) { fill(p, 600<<10) }, nothing, nil},
		{
			"POD-069 the mark of a mirror Pod",
			nothing,
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "a"} },
			[]string{
				`metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or add mirror pod annotation`,
			},
		},
		{"POD-069 another mark", func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "a"} },
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "b"} },
			[]string{`metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "b": field is immutable`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			old := nginx()
			row.old(old)
			p := old.DeepCopy()
			row.change(p)
			before := old.DeepCopy()
			wantErrors(t, ValidateUpdate(p, old), row.want...)
			if old.String() != before.String() {
				t.Error("the old Pod was changed")
			}
		})
	}
}

func TestValidateGatedUpdate(t *testing.T) {
	requirement := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	required := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	term := func(keys ...string) corev1.NodeSelectorTerm {
		var term corev1.NodeSelectorTerm
		for _, key := range keys {
			term.MatchExpressions = append(term.MatchExpressions, requirement(key))
		}
		return term
	}
	selector := func(labels map[string]string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = labels }
	}
	nothing := func(*corev1.Pod) {}
	const terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	rows := []struct {
		name        string
		old, change func(*corev1.Pod)
		want        string
	}{
		{"POD-030 POD-051 a gate less", nothing,
			func(p *corev1.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1] }, ""},
		{"POD-030 no gate any more", nothing, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }, ""},
		{"a new gate", nothing, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{
				{Name: "c"}}
		},
			`spec.schedulingGates[0]: Forbidden: only deletion is allowed, but found new scheduling gate 'c'`},
		{"a label more", selector(map[string]string{"a": "b"}), selector(map[string]string{"a": "b", "c": "d"}), ""},
		{"a label less", selector(map[string]string{"a": "b"}), selector(nil),
			`spec.nodeSelector: Invalid value: null: only additions are allowed (no mutations or deletions)`},
		{"another label", selector(map[string]string{"a": "b"}), selector(map[string]string{"a": "c"}),
			`spec.nodeSelector: Invalid value: {"a":"c"}: only additions are allowed (no mutations or deletions)`},
		{"first terms", nothing, required(term("a")), ""},
		{"a requirement more", required(term("a")), required(term("a", "b")), ""},
		{"a requirement less", required(term("a", "b")), required(term("a")),
			terms +
				`[0]: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)`},
		{"a term more", required(term("a")), required(term("a"), term("b")),
			terms +
				`: Invalid value: [{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchExpressions":[{"key":"b","operator":"Exists"}]}]: no additions/deletions to non-empty NodeSelectorTerms list are allowed`},
		{"no affinity any more", required(term("a")), func(p *corev1.Pod) { p.Spec.Affinity = nil },
			terms + `: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed`},
		{"a term that matches nothing starts to match", required(corev1.NodeSelectorTerm{}), required(term("a")),
			terms +
				`[0]: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)`},
		{"preferences", nothing, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
					Preference: term("a")}}}}
		}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			old := nginx()
			old.Spec.NodeName = ""
			old.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}
			row.old(old)
			p := old.DeepCopy()
			row.change(p)
			var want []string
			if row.want != "" {
				want = append(want, row.want)
			}
			wantErrors(t, ValidateUpdate(p, old), want...)
		})
	}
}

// A gated Pod may change no more of its affinity than where it may run.
func TestValidateGatedUpdateKeepsPodAffinity(t *testing.T) {
	old := nginx()
	old.Spec.NodeName = ""
	old.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}}
	p := old.DeepCopy()
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}}}}
	if errs := ValidateUpdate(p, old); len(errs) != 1 || !strings.Contains(errs[0].Error(),
		"pod updates may not change fields") {
		t.Errorf("got %v", errs)
	}
}

func TestEphemeralContainersUpdate(t *testing.T) {
	container := func(name string) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name,
			Image: "busybox:1"}}
	}
	rows := []struct {
		name   string
		change func(*corev1.Pod)
		want   []string
	}{
		{"SAF-013 one more", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
				container("b"))
		}, nil},
		{"SAF-013 one less", func(p *corev1.Pod) { p.Spec.EphemeralContainers = nil },
			[]string{"spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be removed\n"}},
		{"SAF-013 another one", func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Image = "busybox:2" },
			[]string{"spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be changed\n"}},
		{"SAF-012 everything else is ignored", func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.NodeName, p.Status.Phase = "other", "other", corev1.PodFailed
			p.Labels = map[string]string{"a": "b"}
		}, nil},
		{"POD-256 resources", func(p *corev1.Pod) {
			b := container("b")
			b.Resources.Requests = quantities("cpu", "1")
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, b)
		}, []string{`spec.ephemeralContainers[1].resources: Forbidden: cannot be set for an Ephemeral Container`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			old := nginx()
			old.Spec.EphemeralContainers = []corev1.EphemeralContainer{container("a")}
			Default(old)
			p := old.DeepCopy()
			row.change(p)
			Default(p)
			added := len(p.Spec.EphemeralContainers) > len(old.Spec.EphemeralContainers)
			before := old.DeepCopy()
			prepareForEphemeralUpdate(p, old)
			wantErrors(t, ValidateEphemeralUpdate(p, old), row.want...)
			if p.Spec.Containers[0].Image != old.Spec.Containers[0].Image || p.Status.Phase != old.Status.Phase ||
				len(p.Labels) > 0 {
				t.Errorf("more than the ephemeral containers changed: %+v", p)
			}
			if added && p.Generation != 2 {
				t.Errorf("generation %d, want 2", p.Generation)
			}
			if old.String() != before.String() {
				t.Error("the old Pod was changed")
			}
		})
	}
}

// SAF-014
func TestMirrorPodsHaveNoEphemeralContainers(t *testing.T) {
	old := nginx()
	old.Annotations = map[string]string{mirrorAnnotation: "a"}
	p := old.DeepCopy()
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "e", Image: "e"}}}
	Default(p)
	wantErrors(t, ValidateEphemeralUpdate(p, old),
		`spec.ephemeralContainers: Forbidden: static pods do not support ephemeral containers`)
}

// A Pod stays in its group, and one without a group joins none, gated or not.
func TestSchedulingGroupIsImmutable(t *testing.T) {
	in := func(group string, gates ...corev1.PodSchedulingGate) *corev1.Pod {
		p := nginx()
		p.Spec.SchedulingGates, p.Spec.NodeName = gates, ""
		if group != "" {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		}
		return p
	}
	for _, gates := range [][]corev1.PodSchedulingGate{nil, {{Name: "g"}}} {
		wantErrors(t, ValidateUpdate(in("a", gates...), in("a", gates...)))
		for _, change := range [][2]string{{"a", "b"}, {"a", ""}, {"", "b"}} {
			errs := ValidateUpdate(in(change[1], gates...), in(change[0], gates...))
			if len(errs) != 1 || errs[0].Field != "spec" || errs[0].Type != field.ErrorTypeForbidden {
				t.Errorf("from %q to %q: %v", change[0], change[1], errs)
			}
		}
	}
}
