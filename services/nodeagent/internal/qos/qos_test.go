package qos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func list(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

func podOf(resources ...corev1.ResourceRequirements) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, r := range resources {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: r})
	}
	return pod
}

// POD-231, SAF-085, SAF-086, SAF-087
func TestClass(t *testing.T) {
	full := corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
	none := corev1.ResourceRequirements{}
	withInit := podOf(full)
	withInit.Spec.InitContainers = []corev1.Container{{}}
	podLevel := podOf(none)
	podLevel.Spec.Resources = &full
	recorded := podOf(none)
	recorded.Status.QOSClass = corev1.PodQOSBurstable
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		want corev1.PodQOSClass
	}{
		{"equal requests and limits", podOf(full, full), corev1.PodQOSGuaranteed},
		{"limits alone", podOf(corev1.ResourceRequirements{Limits: list("1", "1Gi")}), corev1.PodQOSGuaranteed},
		{"nothing", podOf(none, none), corev1.PodQOSBestEffort},
		{"one container without", podOf(full, none), corev1.PodQOSBurstable},
		{"init container without", withInit, corev1.PodQOSBurstable},
		{"request below limit", podOf(corev1.ResourceRequirements{Requests: list("500m", "1Gi"),
			Limits: list("1", "1Gi")}), corev1.PodQOSBurstable},
		{"memory alone", podOf(corev1.ResourceRequirements{Requests: list("", "1Gi"), Limits: list("", "1Gi")}),
			corev1.PodQOSBurstable},
		{"only cpu request", podOf(corev1.ResourceRequirements{Requests: list("1m", "")}), corev1.PodQOSBurstable},
		{"pod level", podLevel, corev1.PodQOSGuaranteed},
		{"as recorded", recorded, corev1.PodQOSBurstable},
	} {
		if got := Class(row.pod); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// SAF-085, SAF-086, SAF-087: BestEffort goes first, Guaranteed last.
func TestOOMScore(t *testing.T) {
	const capacity = 4 << 30
	burstable := func(memory string) *corev1.Pod {
		return podOf(corev1.ResourceRequirements{Requests: list("", memory)})
	}
	critical := podOf(corev1.ResourceRequirements{})
	critical.Spec.Priority = ptr.To[int32](2000001000)
	sidecar := burstable("2Gi")
	sidecar.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	for _, row := range []struct {
		name      string
		pod       *corev1.Pod
		container *corev1.Container
		want      int64
	}{
		{"guaranteed", podOf(corev1.ResourceRequirements{Limits: list("1", "1Gi")}), nil, -997},
		{"best effort", podOf(corev1.ResourceRequirements{}), nil, 1000},
		{"half of the node", burstable("2Gi"), nil, 500},
		{"tiny request", burstable("1Ki"), nil, 999},
		{"all of the node", burstable("4Gi"), nil, 3},
		{"node critical", critical, nil, -997},
		{"sidecar", sidecar, &sidecar.Spec.InitContainers[0], 500},
	} {
		container := row.container
		if container == nil {
			container = &row.pod.Spec.Containers[0]
		}
		if got := OOMScore(row.pod, container, capacity); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestCPU(t *testing.T) {
	for milli, want := range map[int64][2]int64{0: {2, 0}, 1: {2, 1000}, 100: {102, 10000}, 1000: {1024, 100000},
		1 << 40: {262144, 100 << 40}} {
		if shares, quota := CPUShares(milli), CPUQuota(milli); shares != want[0] || quota != want[1] {
			t.Errorf("%dm: %d, %d; want %v", milli, shares, quota, want)
		}
	}
}
