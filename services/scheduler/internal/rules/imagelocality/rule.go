// Package imagelocality prefers nodes that have the images of a Pod already.
//
//keelson:decision
package imagelocality

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// The sum of the images on a node gives a score from least, for all of them together, to most, for each of them.
const (
	least = 23 << 20
	most  = 1000 << 20
)

// Rule ranks nodes by the size of the images of the Pod that they have: those of its containers, its init containers
// and its image volumes. What few nodes have counts little, so that not all Pods of an image go to these.
func Rule() rules.Rule {
	return rules.Rule{Name: "ImageLocality", Weight: 1, Key: key, Score: score}
}

func key(b []byte, p rules.Pod) []byte {
	each(p.Spec, func(image string) { b = append(append(b, image...), 0) })
	return b
}

// each calls visit with the image of each container and image volume, as the runtime names it.
func each(spec *corev1.PodSpec, visit func(string)) {
	name := func(image string) {
		if strings.LastIndexByte(image, ':') <= strings.LastIndexByte(image, '/') {
			image += ":latest"
		}
		visit(image)
	}
	for i := range spec.InitContainers {
		name(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		name(spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Image; v != nil {
			name(v.Reference)
		}
	}
}

func score(p rules.Pod) *rules.Score {
	var (
		names []string
		times []int64 // how often each is asked for
		asked int64
	)
	each(p.Spec, func(image string) {
		asked++
		i := slices.Index(names, image)
		if i < 0 {
			i = len(names)
			names, times = append(names, image), append(times, 0)
		}
		times[i]++
	})
	if asked == 0 {
		return nil
	}
	return &rules.Score{Order: rules.AsItIs, Judge: rules.ByImages(names, func(on []columns.Image) int64 {
		sum := int64(0)
		for i, image := range on {
			sum += times[i] * worth(image)
		}
		return rules.MaxScore * (min(max(sum, least), most*asked) - least) / (most*asked - least)
	})}
}

// worth is the size of an image as the share of nodes that have it.
func worth(image columns.Image) int64 {
	if image.Among == 0 {
		return 0
	}
	return int64(float64(image.Size) * (float64(image.Nodes) / float64(image.Among)))
}
