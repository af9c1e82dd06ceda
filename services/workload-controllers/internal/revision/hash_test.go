package revision

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "tier": "front", "zone": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func TestHashNamesTemplates(t *testing.T) {
	one := int32(1)
	two := int32(2)
	base := Hash(template("web:1"), nil)

	t.Run("DEP-026 equal templates have equal hashes", func(t *testing.T) {
		again := template("web:1")
		again.Spec.Containers[0].Env = []corev1.EnvVar{}
		if got := Hash(again, nil); got != base {
			t.Errorf("an empty list changes the hash: %s, then %s", base, got)
		}
		limited, same := template("web:1"), template("web:1")
		limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
		same.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		if Hash(limited, nil) != Hash(same, nil) {
			t.Error("two ways to write one quantity have two hashes")
		}
	})
	// A restart with another version of the controller must find the same names: the value is pinned.
	t.Run("DEP-026 the hash outlives the process", func(t *testing.T) {
		if want := "6675587479"; base != want {
			t.Errorf("hash = %s, want %s", base, want)
		}
	})
	t.Run("DEP-026 another image has another hash", func(t *testing.T) {
		if Hash(template("web:2"), nil) == base {
			t.Error("the image does not count")
		}
	})
	t.Run("POD-045 an init container counts", func(t *testing.T) {
		with := func(change func(*corev1.Container)) string {
			tpl := template("web:1")
			tpl.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "busybox:1"}}
			change(&tpl.Spec.InitContainers[0])
			return Hash(tpl, nil)
		}
		hashes := map[string]bool{
			base: true, with(func(*corev1.Container) {}): true,
			with(func(c *corev1.Container) { c.Image = "busybox:2" }):                true,
			with(func(c *corev1.Container) { c.Command = []string{"true"} }):         true,
			with(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A"}} }): true,
		}
		if len(hashes) != 5 {
			t.Errorf("five templates have %d hashes", len(hashes))
		}
	})
	t.Run("DEP-028 a collision gives another hash", func(t *testing.T) {
		hashes := map[string]bool{base: true, Hash(template("web:1"), &one): true, Hash(template("web:1"), &two): true}
		if len(hashes) != 3 {
			t.Errorf("collisions 0, 1 and 2 give %d hashes", len(hashes))
		}
	})
	t.Run("DEP-028 the hash label does not count", func(t *testing.T) {
		labelled := WithHash(template("web:1"), base)
		if Hash(&labelled, nil) != base || !SameTemplate(&labelled, template("web:1")) {
			t.Error("the hash label counts")
		}
	})
	t.Run("DEP-023 the hash may end a name", func(t *testing.T) {
		if problems := validation.IsDNS1123Label(base); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

func TestHashLabelIsAddedToCopies(t *testing.T) {
	original := template("web:1")
	labels := maps.Clone(original.Labels)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	withHash, narrowed := WithHash(original, "abc"), SelectorWithHash(selector, "abc")
	if !maps.Equal(original.Labels, labels) || len(selector.MatchLabels) != 1 {
		t.Error("the original changed")
	}
	if withHash.Labels[HashLabel] != "abc" || narrowed.MatchLabels[HashLabel] != "abc" { // DEP-025
		t.Errorf("the hash is missing: %v, %v", withHash.Labels, narrowed.MatchLabels)
	}
	if bare := WithoutHash(&withHash); !maps.Equal(bare.Labels, labels) {
		t.Errorf("without hash: %v, want %v", bare.Labels, labels)
	}
}

// Whatever is changed in a template makes it another, but for the hash label and for two ways to write the same.
func TestSameTemplate(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		same   bool
	}{
		"nothing":           {func(*corev1.PodTemplateSpec) {}, true},
		"the hash":          {func(p *corev1.PodTemplateSpec) { p.Labels[HashLabel] = "1" }, true},
		"an empty list":     {func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{} }, true},
		"empty annotations": {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{} }, true},
		"an annotation":     {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"a": ""} }, false},
		"one label more":    {func(p *corev1.PodTemplateSpec) { p.Labels["more"] = "" }, false},
		"one label less":    {func(p *corev1.PodTemplateSpec) { delete(p.Labels, "app") }, false},
		"no labels":         {func(p *corev1.PodTemplateSpec) { p.Labels = nil }, false},
		"another value":     {func(p *corev1.PodTemplateSpec) { p.Labels["app"] = "db" }, false},
		"another key": {func(p *corev1.PodTemplateSpec) { delete(p.Labels, "app"); p.Labels["a"] = "web" },
			false},
		"another image":    {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" }, false},
		"another name":     {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Name = "b" }, false},
		"another argument": {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Args = []string{"b"} }, false},
		"one container more": {func(p *corev1.PodTemplateSpec) { p.Spec.Containers = make([]corev1.Container, 2) },
			false},
		"no container":         {func(p *corev1.PodTemplateSpec) { p.Spec.Containers = nil }, false},
		"an init container":    {func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers = p.Spec.Containers }, false},
		"another node":         {func(p *corev1.PodTemplateSpec) { p.Spec.NodeName = "n" }, false},
		"a finalizer":          {func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"a.b/c"} }, false},
		"another service name": {func(p *corev1.PodTemplateSpec) { p.Spec.ServiceAccountName = "a" }, false},
	} {
		one, other := template("web:1"), template("web:1")
		row.change(other)
		labels := maps.Clone(other.Labels)
		if SameTemplate(one, other) != row.same || SameTemplate(other, one) != row.same {
			t.Errorf("%s: same is not %t", name, row.same)
		}
		if !maps.Equal(other.Labels, labels) {
			t.Errorf("%s: the labels are changed", name)
		}
	}
}

// The ReplicaSets of a long history cost a pass next to nothing.
func TestAnotherTemplateCostsNothing(t *testing.T) {
	one, other := template("web:1"), template("web:2")
	other.Labels[HashLabel] = "1"
	if n := testing.AllocsPerRun(100, func() { SameTemplate(one, other) }); n > 0 {
		t.Errorf("%v objects are allocated to see that an image differs", n)
	}
}
