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

// podWith returns a Pod with requirements of its own.
func podWith(own corev1.ResourceRequirements, containers ...corev1.ResourceRequirements) *corev1.Pod {
	pod := podOf(containers...)
	pod.Spec.Resources = &own
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
		{"cpu unequal", podOf(corev1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("2", "1Gi")}),
			corev1.PodQOSBurstable},
		{"requests without limits", podOf(corev1.ResourceRequirements{Requests: list("1", "1Gi")}),
			corev1.PodQOSBurstable},
		{"requests and limits of zero", podOf(corev1.ResourceRequirements{Requests: list("0", "0"),
			Limits: list("0", "0")}), corev1.PodQOSBestEffort},
		{"a resource that decides nothing", podOf(corev1.ResourceRequirements{Limits: corev1.ResourceList{
			"example.com/dongle": resource.MustParse("1")}}), corev1.PodQOSBestEffort},
		{"the Pod as a whole less than its containers", podWith(corev1.ResourceRequirements{Requests: list("1", "")},
			full), corev1.PodQOSBurstable},
	} {
		if got := Class(row.pod); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// SAF-085, SAF-086, SAF-087: BestEffort is killed first, Guaranteed last.
func TestOOMScore(t *testing.T) {
	const capacity = 4 << 30
	burstable := func(memory string) *corev1.Pod {
		return podOf(corev1.ResourceRequirements{Requests: list("", memory)})
	}
	critical := podOf(corev1.ResourceRequirements{})
	critical.Spec.Priority = ptr.To[int32](2000001000)
	sidecar := burstable("2Gi")
	sidecar.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	larger := burstable("2Gi")
	larger.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Resources: corev1.ResourceRequirements{Requests: list("", "3Gi")}}}
	ends := burstable("2Gi")
	ends.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyOnFailure)}}
	restarted := podOf(corev1.ResourceRequirements{Requests: list("", "2Gi")}, corev1.ResourceRequirements{})
	restarted.Spec.Containers[0].Name, restarted.Spec.Containers[1].Name = "a", "b"
	restarted.Spec.Containers[1].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	// The Pod requests 3Gi, of which the containers have not requested 2Gi: 1Gi for each of the two.
	whole := podWith(corev1.ResourceRequirements{Requests: list("", "3Gi")},
		corev1.ResourceRequirements{Requests: list("", "1Gi")}, corev1.ResourceRequirements{})
	// Of 4Gi the two containers have requested 1Gi and an init container, which ends, 2Gi: 2Gi are left for three.
	three := podWith(corev1.ResourceRequirements{Requests: list("", "4Gi")},
		corev1.ResourceRequirements{Requests: list("", "1Gi")}, corev1.ResourceRequirements{})
	three.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("", "2Gi")}}}
	served := podWith(corev1.ResourceRequirements{Requests: list("", "3Gi")},
		corev1.ResourceRequirements{Requests: list("", "1Gi")})
	served.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	almost := podOf(corev1.ResourceRequirements{})
	almost.Spec.Priority = ptr.To[int32](2000000999)
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
		{"a sidecar that asks for more", larger, &larger.Spec.InitContainers[0], 250},
		{"a main container that is always restarted", restarted, &restarted.Spec.Containers[1], 999},
		{"an init container that ends", ends, &ends.Spec.InitContainers[0], 999},
		{"more than the node", burstable("5Gi"), nil, 3},
		{"its own and a share of the Pod's", whole, nil, 500},
		{"a share of the Pod's alone", whole, &whole.Spec.Containers[1], 750},
		{"a share with an init container", three, &three.Spec.Containers[1], 834},
		{"a sidecar as what it serves", served, &served.Spec.InitContainers[0], 500},
		{"one below node critical", almost, nil, 1000},
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

// On a node of unknown memory no Pod has a share.
func TestOOMScoreOfAnUnknownNode(t *testing.T) {
	pod := podOf(corev1.ResourceRequirements{Requests: list("", "1Gi")})
	for _, capacity := range []int64{0, -1} {
		if got := OOMScore(pod, &pod.Spec.Containers[0], capacity); got != 999 {
			t.Errorf("of %d bytes: %d, want 999", capacity, got)
		}
	}
}

// POD-233: a Pod is limited as a whole if the Pod has a limit, or all of its containers do. A limit that one
// container does not have would stop it at the sum of the others.
func TestPodLimits(t *testing.T) {
	limits := func(cpu, memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: list(cpu, memory)}
	}
	withInit := podOf(limits("1", "1Gi"))
	withInit.Spec.InitContainers = []corev1.Container{{Resources: limits("3", "")}}
	overhead := podOf(limits("1", "1Gi"))
	overhead.Spec.Overhead = list("250m", "64Mi")
	for _, row := range []struct {
		name        string
		pod         *corev1.Pod
		cpu, memory int64
	}{
		{"nothing", podOf(corev1.ResourceRequirements{}), 0, 0},
		{"all of them", podOf(limits("1", "1Gi"), limits("500m", "1Mi")), 1500, 1<<30 + 1<<20},
		{"POD-228 one without memory", podOf(limits("1", "1Gi"), limits("500m", "")), 1500, 0},
		{"one without cpu", podOf(limits("1", "1Gi"), limits("", "1Mi")), 0, 1<<30 + 1<<20},
		{"an init container without memory", withInit, 3000, 0},
		{"with what the runtime needs", overhead, 1250, 1<<30 + 64<<20},
		{"the Pod alone", podWith(limits("2", "2Gi"), corev1.ResourceRequirements{}), 2000, 2 << 30},
		{"the Pod below its containers", podWith(limits("2", "2Gi"), limits("3", "3Gi")), 2000, 2 << 30},
		{"POD-228 the Pod's cpu, and a container without memory", podWith(limits("2", ""), limits("", "1Gi"),
			corev1.ResourceRequirements{}), 2000, 0},
		{"the Pod's memory, and a container without cpu", podWith(limits("", "2Gi"), limits("1", ""),
			corev1.ResourceRequirements{}), 0, 2 << 30},
		{"the Pod's cpu, and all containers' memory", podWith(limits("2", ""), limits("", "1Gi")), 2000, 1 << 30},
		{"the Pod's requests, and all containers' limits", podWith(corev1.ResourceRequirements{
			Requests: list("1", "1Gi")}, limits("2", "2Gi")), 2000, 2 << 30},
	} {
		if cpu, memory := PodCPULimit(row.pod), PodMemoryLimit(row.pod); cpu != row.cpu || memory != row.memory {
			t.Errorf("%s: %dm and %d bytes, want %dm and %d", row.name, cpu, memory, row.cpu, row.memory)
		}
	}
}

func TestCPU(t *testing.T) {
	for milli, want := range map[int64][2]int64{0: {2, 0}, 1: {2, 1000}, 100: {102, 10000}, 1000: {1024, 100000},
		1 << 40: {262144, 100 << 40}, 10: {10, 1000}, 11: {11, 1100}, 2: {2, 1000}, 3: {3, 1000},
		256000: {262144, 25600000},
		255999: {262142, 25599900}} {
		if shares, quota := CPUShares(milli), CPUQuota(milli); shares != want[0] || quota != want[1] {
			t.Errorf("%dm: %d, %d; want %v", milli, shares, quota, want)
		}
	}
}
