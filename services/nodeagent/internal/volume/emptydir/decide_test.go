package emptydir

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// amounts reads "name=quantity" pairs.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limited(pairs ...string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Limits: amounts(pairs...)}}
}

// A volume in memory is as small as the smallest of its own limit, its Pod's and the node's memory.
func TestMemorySize(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		name                    string
		volume, container, node string
		want                    int64
	}{
		{"nothing is known", "", "", "", 0},
		{"the node alone", "", "", "100Mi", 100 * mib},
		{"the volume's limit", "30Mi", "", "100Mi", 30 * mib},
		{"the volume's limit, the node's size unknown", "30Mi", "", "", 30 * mib},
		{"the Pod's limit", "", "40Mi", "100Mi", 40 * mib},
		{"the Pod's limit, the node's size unknown", "", "40Mi", "", 40 * mib},
		{"the volume's below the Pod's", "30Mi", "40Mi", "100Mi", 30 * mib},
		{"the Pod's below the volume's", "50Mi", "40Mi", "100Mi", 40 * mib},
		{"the Pod's below the volume's, the node's size unknown", "50Mi", "40Mi", "", 40 * mib},
		{"both above the node's", "150Mi", "200Mi", "100Mi", 100 * mib},
		{"a limit of nothing is none", "0", "", "100Mi", 100 * mib},
		{"one byte", "1", "", "100Mi", 1},
	} {
		source, pod, node := &corev1.EmptyDirVolumeSource{}, &corev1.Pod{}, corev1.ResourceList{}
		pod.Spec.Containers = []corev1.Container{{}}
		if row.volume != "" {
			source.SizeLimit = ptr.To(resource.MustParse(row.volume))
		}
		if row.container != "" {
			pod.Spec.Containers[0] = limited("memory", row.container)
		}
		if row.node != "" {
			node = amounts("memory", row.node)
		}
		if got := memorySize(pod, source, node); got != row.want {
			t.Errorf("%s: %d bytes, want %d", row.name, got, row.want)
		}
	}
}

// A volume in huge pages may hold the limit of its Pod as a whole, in pages of the size that the Pod requests:
// without a size the kernel would let it take all of the node's pages.
func TestHugePages(t *testing.T) {
	const (
		mib  = 1 << 20
		none = "medium HugePages needs containers that ask for pages of exactly one size, found 0 sizes"
	)
	always := ptr.To(corev1.ContainerRestartPolicyAlways)
	sidecar := limited("hugepages-2Mi", "16Mi")
	sidecar.RestartPolicy = always
	for _, row := range []struct {
		name   string
		medium corev1.StorageMedium
		spec   corev1.PodSpec
		// page and size are in bytes.
		page, size int64
		wrong      string
	}{
		{"one container", "HugePages", corev1.PodSpec{Containers: []corev1.Container{limited("hugepages-2Mi", "8Mi")}},
			2 * mib, 8 * mib, ""},
		{"two containers have the sum", "HugePages-2Mi", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "8Mi"), limited("hugepages-2Mi", "4Mi", "memory", "1Gi")}}, 2 * mib, 12 * mib, ""},
		{"POD-185 an init container alone", "HugePages", corev1.PodSpec{InitContainers: []corev1.Container{
			limited("hugepages-2Mi", "4Mi")}, Containers: []corev1.Container{{}}}, 2 * mib, 4 * mib, ""},
		{"an init container that has more", "HugePages", corev1.PodSpec{InitContainers: []corev1.Container{
			limited("hugepages-2Mi", "32Mi")}, Containers: []corev1.Container{limited("hugepages-2Mi", "8Mi")}},
			2 * mib, 32 * mib, ""},
		{"a sidecar beside a container", "HugePages-2Mi", corev1.PodSpec{InitContainers: []corev1.Container{sidecar},
			Containers: []corev1.Container{limited("hugepages-2Mi", "8Mi")}}, 2 * mib, 24 * mib, ""},
		{"the Pod as a whole", "HugePages", corev1.PodSpec{Resources: &corev1.ResourceRequirements{
			Limits: amounts("hugepages-1Gi", "2Gi", "memory", "1Gi")}, Containers: []corev1.Container{{}}},
			1 << 30, 2 << 30, ""},
		{"what the runtime needs is not the volume's", "HugePages", corev1.PodSpec{
			Overhead: amounts("hugepages-2Mi", "2Mi"), Containers: []corev1.Container{limited("hugepages-2Mi", "8Mi")}},
			2 * mib, 8 * mib, ""},
		{"one size under two names", "HugePages-2Mi", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "8Mi", "hugepages-2048Ki", "4Mi")}}, 2 * mib, 12 * mib, ""},
		{"one of two sizes", "HugePages-1Gi", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "8Mi", "hugepages-1Gi", "3Gi")}}, 1 << 30, 3 << 30, ""},
		{"which of two sizes", "HugePages", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "8Mi", "hugepages-1Gi", "3Gi")}}, 0, 0,
			"medium HugePages needs containers that ask for pages of exactly one size, found 2 sizes"},
		{"nobody asks", "HugePages", corev1.PodSpec{Containers: []corev1.Container{limited("memory", "1Gi")}}, 0, 0,
			none},
		{"asking for nothing", "HugePages", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "0")}}, 0, 0, none},
		{"nobody asks for this size", "HugePages-1Gi", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "8Mi")}}, 0, 0,
			"medium HugePages-1Gi needs a container that asks for pages of this size"},
		{"asking for nothing of this size", "HugePages-2Mi", corev1.PodSpec{Containers: []corev1.Container{
			limited("hugepages-2Mi", "0")}}, 0, 0,
			"medium HugePages-2Mi needs a container that asks for pages of this size"},
		{"a size that is none", "HugePages-big", corev1.PodSpec{}, 0, 0, `medium "HugePages-big": page size "big": ` +
			resource.ErrFormatWrong.Error()},
		{"another medium", "Tape", corev1.PodSpec{}, 0, 0,
			`unknown storage medium "Tape": use "", Memory, HugePages or HugePages-<size>`},
	} {
		page, size, err := hugePages(&corev1.Pod{Spec: row.spec}, row.medium)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if page != row.page || size != row.size || text != row.wrong {
			t.Errorf("%s: %d bytes in pages of %d, %q; want %d, %d, %q", row.name, size, page, text, row.size, row.page,
				row.wrong)
		}
	}
}
