package memory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"keelson.dev/kit/systempriority"
)

// none is a request or a limit that a container lacks.
const none = -1

func list(bytes int64) corev1.ResourceList {
	if bytes == none {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(bytes, resource.BinarySI)}
}

func container(request, limit int64) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(request), Limits: list(limit)}}
}

func podOf(class corev1.PodQOSClass, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{Containers: containers},
		Status: corev1.PodStatus{QOSClass: class}}
}

// rulesOf returns the rules of a machine of version 2 that limits swap.
func rulesOf(t interface{ Fatal(args ...any) }, m Machine, set func(*Settings)) Rules {
	s := DefaultSettings()
	set(&s)
	m.CgroupV2 = true
	r, err := s.Rules(m)
	if err == nil {
		r, err = r.OnKernel(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func swapping(s *Settings) { s.SwapBehavior = limitedSwap }

// On a machine with 40 GiB of memory and 20 GiB of swap.
func TestSwapOf(t *testing.T) {
	const gib = 1 << 30
	machine := Machine{Memory: 40 * gib, Swap: 20 * gib}
	burstable := corev1.PodQOSBurstable
	for _, row := range []struct {
		name           string
		class          corev1.PodQOSClass
		request, limit int64
		priority       int32
		static         bool
		want           int64
	}{
		{name: "in proportion", class: burstable, request: 10 * gib, limit: none, want: 5 * gib},
		{name: "below a limit", class: burstable, request: 10 * gib, limit: 10*gib + 1, want: 5 * gib},
		{name: "the limit", class: burstable, request: 10 * gib, limit: 10 * gib},
		{name: "all memory", class: burstable, request: 40 * gib, limit: none, want: 20 * gib},
		{name: "a byte more than all memory", class: burstable, request: 40*gib + 1, limit: none},
		{name: "a byte, which is half a byte of swap", class: burstable, request: 1, limit: none},
		{name: "two bytes", class: burstable, request: 2, limit: none, want: 1},
		{name: "no request", class: burstable, request: none, limit: none},
		{name: "no request and a limit", class: burstable, request: none, limit: gib},
		{name: "guaranteed", class: corev1.PodQOSGuaranteed, request: gib, limit: 2 * gib},
		{name: "best effort", class: corev1.PodQOSBestEffort, request: gib, limit: none},
		{name: "critical", class: burstable, request: gib, limit: none, priority: systempriority.ClusterCritical},
		{name: "just not critical", class: burstable, request: gib, limit: none,
			priority: systempriority.ClusterCritical - 1, want: gib / 2},
		{name: "static", class: burstable, request: gib, limit: none, static: true},
	} {
		pod := podOf(row.class, container(row.request, row.limit))
		pod.Spec.Priority = ptr.To(row.priority)
		r := rulesOf(t, machine, swapping).WithStatic(func(uid types.UID) bool { return row.static && uid == "u" })
		if got := r.SwapOf(pod, &pod.Spec.Containers[0]); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
		off := rulesOf(t, machine, func(*Settings) {})
		if got := off.SwapOf(pod, &pod.Spec.Containers[0]); got != 0 {
			t.Errorf("%s: %d under NoSwap", row.name, got)
		}
	}
}

// If the requests fit into the memory, the shares fit into the swap. A larger request never gets less swap.
func TestSwapFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.Int64Range(1, 1<<44).Draw(t, "memory")
		r := rulesOf(t, Machine{Memory: memory, Swap: rapid.Int64Range(1, 1<<44).Draw(t, "swap")}, swapping)
		pod, left := podOf(corev1.PodQOSBurstable), memory
		for left > 0 && len(pod.Spec.Containers) < 5 {
			request := rapid.Int64Range(1, left).Draw(t, "request")
			pod.Spec.Containers = append(pod.Spec.Containers, container(request, none))
			left -= request
		}
		pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers[:1], pod.Spec.Containers[1:]
		if got := r.SwapOfPod(pod); got > r.machine.Swap {
			t.Fatalf("%d bytes of %d", got, r.machine.Swap)
		}
		more := container(pod.Spec.InitContainers[0].Resources.Requests.Memory().Value()+left, none)
		if less, got := r.SwapOf(pod, &pod.Spec.InitContainers[0]), r.SwapOf(pod, &more); got < less {
			t.Fatalf("%d bytes for more, %d for less", got, less)
		}
	})
}
