package node

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// The maximum numbers of images and names that a node reports, the same as the kubelet's.
const (
	maxImages     = 50
	maxImageNames = 5
)

// Images returns the images that a Node lists: the largest ones, by digests and tags. It leaves out images without
// a name, which no client could use.
func Images(images []runtime.Image) []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, image := range images {
		names := slices.Concat(image.Digests, image.Tags)
		if len(names) > 0 {
			out = append(out, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)],
				SizeBytes: int64(image.Size)})
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), cmp.Compare(a.Names[0], b.Names[0]))
	})
	return out[:min(len(out), maxImages)]
}
