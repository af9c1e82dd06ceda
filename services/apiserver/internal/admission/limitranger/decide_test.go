package limitranger

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func list(namesAndAmounts ...string) corev1.ResourceList {
	if len(namesAndAmounts) == 0 {
		return nil
	}
	amounts := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		amounts[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return amounts
}

func ranges(items ...corev1.LimitRangeItem) []*corev1.LimitRange {
	return []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: items}}}
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

func texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func TestCheckPod(t *testing.T) {
	least := corev1.LimitRangeItem{Type: "Container", Min: list("cpu", "100m")}
	most := corev1.LimitRangeItem{Type: "Container", Max: list("cpu", "1")}
	ratio := corev1.LimitRangeItem{Type: "Container", MaxLimitRequestRatio: list("cpu", "2")}
	whole := corev1.LimitRangeItem{Type: "Pod", Min: list("memory", "2Gi"), Max: list("memory", "3Gi")}
	for _, row := range []struct {
		name string
		item corev1.LimitRangeItem
		pod  *corev1.Pod
		want []string
	}{
		{"the least", least, pod(container("a", list("cpu", "100m"), list("cpu", "100m"))), nil},
		{"less", least, pod(container("a", list("cpu", "99m"), nil)),
			[]string{"minimum cpu usage per Container is 100m, but request is 99m"}},
		{"a lesser limit", least, pod(container("a", list("cpu", "100m"), list("cpu", "99m"))),
			[]string{"minimum cpu usage per Container is 100m, but limit is 99m"}},
		{"nothing said", least, pod(container("a", nil, list("cpu", "1"))),
			[]string{"minimum cpu usage per Container is 100m.  No request is specified"}},
		{"the most", most, pod(container("a", list("cpu", "1"), list("cpu", "1"))), nil},
		{"more", most, pod(container("a", nil, list("cpu", "1001m"))),
			[]string{"maximum cpu usage per Container is 1, but limit is 1001m"}},
		{"a request of more", most, pod(container("a", list("cpu", "1001m"), list("cpu", "1"))),
			[]string{"maximum cpu usage per Container is 1, but request is 1001m"}},
		{"no limit", most, pod(container("a", list("cpu", "1"), nil)),
			[]string{"maximum cpu usage per Container is 1.  No limit is specified"}},
		{"widest", ratio, pod(container("a", list("cpu", "1"), list("cpu", "2"))), nil},
		{"wider", ratio, pod(container("a", list("cpu", "1"), list("cpu", "2001m"))),
			[]string{"cpu max limit to request ratio per Container is 2, but provided ratio is 2.001000"}},
		{"to nothing", ratio, pod(container("a", list("cpu", "0"), list("cpu", "1"))),
			[]string{"cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"}},
		{"of nothing", ratio, pod(container("a", list("cpu", "1"), nil)),
			[]string{"cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"}},
		{"every container", most, &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", nil, list("cpu", "2"))},
			Containers: []corev1.Container{container("a", nil, list("cpu", "3")),
				container("b", nil, list("cpu", "1"))},
		}}, []string{"maximum cpu usage per Container is 1, but limit is 2",
			"maximum cpu usage per Container is 1, but limit is 3"}},
		{"together enough", whole, pod(container("a", list("memory", "1Gi"), list("memory", "1Gi")),
			container("b", list("memory", "1Gi"), list("memory", "2Gi"))), nil},
		{"together too little", whole, pod(container("a", list("memory", "1Gi"), list("memory", "3Gi"))),
			[]string{"minimum memory usage per Pod is 2Gi, but request is 1Gi"}},
		{"together too much", whole, pod(container("a", list("memory", "2Gi"), list("memory", "2Gi")),
			container("b", nil, list("memory", "2Gi"))),
			[]string{"maximum memory usage per Pod is 3Gi, but limit is 4Gi"}},
		{"claims are no Pods", corev1.LimitRangeItem{Type: "PersistentVolumeClaim", Min: list("storage", "1Gi")},
			pod(container("a", nil, nil)), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := texts(checkPod(row.pod, ranges(row.item))); !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestCheckClaim(t *testing.T) {
	sizes := ranges(corev1.LimitRangeItem{Type: "PersistentVolumeClaim", Min: list("storage", "1Gi"),
		Max: list("storage", "2Gi")}, corev1.LimitRangeItem{Type: "Pod", Max: list("cpu", "1")})
	for _, row := range []struct {
		name  string
		asked corev1.ResourceList
		want  []string
	}{
		{"the least", list("storage", "1Gi"), nil},
		{"the most", list("storage", "2Gi"), nil},
		{"less", list("storage", "1"),
			[]string{"minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1"}},
		{"more", list("storage", "3Gi"),
			[]string{"maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"}},
		{"nothing", nil, []string{"minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
			"maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.Resources.Requests = row.asked
			if got := texts(checkClaim(claim, sizes)); !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	both := ranges(corev1.LimitRangeItem{Type: "Container", Default: list("cpu", "2", "memory", "2Gi"),
		DefaultRequest: list("cpu", "1", "memory", "1Gi")}, corev1.LimitRangeItem{Type: "Pod"})
	other := ranges(corev1.LimitRangeItem{Type: "Container", DefaultRequest: list("cpu", "9", "ephemeral-storage",
		"1Gi")})
	p := pod(container("empty", nil, nil), container("own", list("cpu", "5"), list("cpu", "6", "memory", "3Gi")))
	p.Spec.InitContainers = []corev1.Container{container("first", list("cpu", "1", "memory", "1Gi"), nil)}
	complete(p, slices.Concat(both, other))

	for i, want := range []corev1.ResourceRequirements{
		{Requests: list("cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi"), Limits: list("cpu", "2", "memory",
			"2Gi")},
		{Requests: list("cpu", "5", "memory", "1Gi", "ephemeral-storage", "1Gi"), Limits: list("cpu", "6", "memory",
			"3Gi")},
	} {
		if got := p.Spec.Containers[i].Resources; !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("container %d: %v, want %v", i, got, want)
		}
	}
	if got := p.Spec.InitContainers[0].Resources.Limits; !equality.Semantic.DeepEqual(got,
		list("cpu", "2", "memory", "2Gi")) {
		t.Errorf("init container: %v", got)
	}
	again := p.DeepCopy()
	if complete(again, slices.Concat(both, other)); !equality.Semantic.DeepEqual(again, p) {
		t.Errorf("a second pass makes %v of %v", again, p)
	}
}

func TestAnnotation(t *testing.T) {
	defaults := ranges(corev1.LimitRangeItem{Type: "Container", Default: list("cpu", "2"),
		DefaultRequest: list("cpu", "1", "memory", "1Gi")})
	p := pod(container("web", nil, nil))
	p.Spec.InitContainers = []corev1.Container{container("first", list("cpu", "1", "memory", "1Gi"), nil)}
	complete(p, defaults)
	const want = "LimitRanger plugin set: cpu, memory request for container web; cpu limit for container web; " +
		"cpu limit for init container first"
	if got := p.Annotations["kubernetes.io/limit-ranger"]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	full := pod(container("web", list("cpu", "1", "memory", "1Gi"), list("cpu", "2")))
	full.ObjectMeta = metav1.ObjectMeta{}
	if complete(full, defaults); full.Annotations != nil {
		t.Errorf("nothing was given, but it says %v", full.Annotations)
	}
}
