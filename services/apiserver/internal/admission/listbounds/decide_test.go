package listbounds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	affinity  = "template.spec.affinity."
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
	few       = ": Too many: 21: must have at most 20 items "
)

// affine is a template of Pods that say n things of each kind about other Pods.
func affine(n int) corev1.PodTemplate {
	terms, weighted := make([]corev1.PodAffinityTerm, n), make([]corev1.WeightedPodAffinityTerm, n)
	return corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Affinity: &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  terms,
				PreferredDuringSchedulingIgnoredDuringExecution: weighted},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  terms,
				PreferredDuringSchedulingIgnoredDuringExecution: weighted}},
		TopologySpreadConstraints: make([]corev1.TopologySpreadConstraint, n)}}}
}

func TestTooLong(t *testing.T) {
	containers := func(n int) []corev1.Container { return make([]corev1.Container, n) }
	for name, row := range map[string]struct {
		object any
		want   string
	}{
		"nothing":         {corev1.Pod{}, "[]"},
		"1000 finalizers": {corev1.Service{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, 1000)}}, "[]"},
		"1001 finalizers": {corev1.Service{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, 1001)}},
			"[metadata.finalizers: Too many: 1001: must have at most 1000 items]"},
		"1001 owners": {corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference,
			1001)}},
			"[metadata.ownerReferences: Too many: 1001: must have at most 1000 items]"},
		"claims of a template in a template": {schedulingv1beta1.CompositePodGroupTemplate{
			CompositePodGroupTemplates: []schedulingv1beta1.CompositePodGroupTemplate{{},
				{PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{
					{ResourceClaims: make([]schedulingv1beta1.PodGroupResourceClaim, 1001)}}}}},
			"[compositePodGroupTemplates[1].podGroupTemplates[0].resourceClaims: Too many: 1001: must have at most " +
				"1000 items]"},
		"1001 containers": {corev1.PodTemplate{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: containers(1001)}}},
			"[template.spec.containers: Too many: 1001: must have at most 1000 items]"},
		"variables of an ephemeral container": {
			corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{}, {
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: make([]corev1.EnvVar, 1001)}}}}},
			"[spec.ephemeralContainers[1].env: Too many: 1001: must have at most 1000 items]"},
		"conditions": {corev1.Node{Status: corev1.NodeStatus{Conditions: make([]corev1.NodeCondition,
			1001)}}, "[status.conditions: Too many: 1001: must have at most 1000 items]"},
		"a list that is replaced": {corev1.Node{Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 1001)}},
			"[]"},
		"1000 containers": {corev1.PodTemplate{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: containers(1000)}}}, "[]"},
		"1000 variables of 1000 containers": {corev1.Pod{Spec: corev1.PodSpec{Containers: slices.Repeat(
			[]corev1.Container{{Env: make([]corev1.EnvVar, 1000)}}, 1000)}}, "[]"},
		"20 terms about other Pods": {affine(20), "[]"},
		"21 terms about other Pods": {affine(21), "[" + affinity + "podAffinity." + required + few + affinity +
			"podAffinity." + preferred + few + affinity + "podAntiAffinity." + required + few + affinity +
			"podAntiAffinity." + preferred + few + "template.spec.topologySpreadConstraints" +
			strings.TrimRight(few, " ") + "]"},
		"two lists": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{VolumeMounts: make([]corev1.VolumeMount, 1001), Ports: make([]corev1.ContainerPort, 1002)}}}},
			"[spec.containers[0].ports: Too many: 1002: must have at most 1000 items " +
				"spec.containers[0].volumeMounts: Too many: 1001: must have at most 1000 items]"},
		"a list inside of one that is too long is not looked at": {corev1.Pod{Spec: corev1.PodSpec{
			Containers: slices.Repeat([]corev1.Container{{Env: make([]corev1.EnvVar, 1001)}}, 1001)}},
			"[spec.containers: Too many: 1001: must have at most 1000 items]"},
		"nothing behind a pointer": {struct{ P *corev1.Pod }{}, "[]"},
		"a list of pointers": {struct {
			L []*corev1.Pod `json:"l"`
		}{[]*corev1.Pod{{}, {Spec: corev1.PodSpec{Volumes: make([]corev1.Volume, 1001)}}}},
			"[l[1].spec.volumes: Too many: 1001: must have at most 1000 items]"},
		"what clients cannot send": {struct {
			Hidden []string `json:"-" patchStrategy:"merge"`
			own    []string `patchStrategy:"merge"`
			Shown  []string `json:"shown" patchStrategy:"merge"`
		}{make([]string, 1001), make([]string, 1001), make([]string, 1001)},
			"[shown: Too many: 1001: must have at most 1000 items]"},
		"one value that is merged": {struct {
			V corev1.VolumeSource `json:"v" patchStrategy:"merge"`
		}{}, "[]"},
		"a list behind a pointer": {struct{ P *corev1.Pod }{
			&corev1.Pod{Spec: corev1.PodSpec{Volumes: make([]corev1.Volume, 1001)}}},
			"[spec.volumes: Too many: 1001: must have at most 1000 items]"},
	} {
		value := reflect.ValueOf(row.object)
		if got := fmt.Sprint(tooLong(value, shapeOf(value.Type()), nil)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// What was stored before there was a bound stays as it is, and can be changed in everything else.
func TestGrown(t *testing.T) {
	for name, row := range map[string]struct {
		before, now int
		want        int // lists that are refused
	}{
		"new":                     {0, 21, 5},
		"as long as before":       {30, 30, 0},
		"shorter, still too long": {30, 29, 0},
		"longer":                  {30, 31, 5},
		"within the bound":        {30, 20, 0},
	} {
		before, now := affine(row.before), affine(row.now)
		if got := grown(tooLongIn(&now), tooLongIn(&before)); len(got) != row.want {
			t.Errorf("%s: %d lists are refused, want %d: %v", name, len(got), row.want, got)
		}
	}
}

// Each write walks the shape of its object: it holds nothing but the way to lists that are bounded.
func TestShapesAreLean(t *testing.T) {
	var walk func(at string, s *shape)
	walk = func(at string, s *shape) {
		for _, part := range s.parts {
			if part.longest == 0 && part.inner == nil {
				t.Errorf("%s.%s bounds nothing", at, part.name)
			}
			if part.inner != nil {
				walk(at+"."+part.name, part.inner)
			}
		}
	}
	pod := shapeOf(reflect.TypeFor[corev1.Pod]())
	if len(pod.parts) != 3 {
		t.Errorf("%d fields of a Pod hold such lists, want metadata, spec and status", len(pod.parts))
	}
	walk("Pod", pod)
	if none := shapeOf(reflect.TypeFor[corev1.ResourceRequirements]()); len(none.parts) != 0 {
		t.Errorf("resources hold %+v", none)
	}
}

func BenchmarkPod(b *testing.B) {
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 3), Volumes: make([]corev1.Volume, 3)}}
	for b.Loop() {
		value := reflect.ValueOf(&pod).Elem()
		tooLong(value, shapeOf(value.Type()), nil)
	}
}
