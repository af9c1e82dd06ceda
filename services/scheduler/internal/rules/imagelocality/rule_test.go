package imagelocality_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules/imagelocality"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const mebibyte = 1 << 20

// having gives a node an image.
func having(size int64, names ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: names, SizeBytes: size})
	}
}

func running(images ...string) *corev1.Pod {
	p := rulestest.Pod("p")
	p.Spec.Containers = nil
	for _, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: image})
	}
	return p
}

// What one image is worth that all of the nodes have: nothing up to 23 MiB, everything from 1000 MiB. SCH-138
func TestBounds(t *testing.T) {
	for size, want := range map[int64]int64{
		0: 0, 22: 0, 23: 0, 32: 0, 33: 1, 500: 48, 511: 49, 512: 50, 999: 99, 1000: 100, 4000: 100,
	} {
		c := rulestest.New(t, rulestest.Node("n", having(size*mebibyte, "app:1")))
		if got := c.Scores(imagelocality.Rule(), running("app:1")); !maps.Equal(got, map[string]int64{"n": want}) {
			t.Errorf("%d MiB: scores are %v, want %d", size, got, want)
		}
	}
}

// The score of the first of four nodes. SCH-138
func TestScore(t *testing.T) {
	const large = 4000 * mebibyte
	withInit := running("app:1")
	withInit.Spec.InitContainers = []corev1.Container{{Image: "init:1"}}
	withVolume := running("app:1")
	withVolume.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: "model"}}}}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		here []func(*corev1.Node)
		also int // how many of the other nodes have the same
		want int64
	}{
		"not there":       {running("app:1"), []func(*corev1.Node){having(large, "app:2")}, 3, 0},
		"on all nodes":    {running("app:1"), []func(*corev1.Node){having(1000*mebibyte, "app:1")}, 3, 100},
		"on half of them": {running("app:1"), []func(*corev1.Node){having(1000*mebibyte, "app:1")}, 1, 48},
		"on one of them":  {running("app:1"), []func(*corev1.Node){having(1000*mebibyte, "app:1")}, 0, 23},
		"by any of its names": {running("a@sha256:1"), []func(*corev1.Node){having(large, "a:1", "a@sha256:1")},
			3, 100},
		"without a tag": {running("app"), []func(*corev1.Node){having(large, "app:latest")}, 3, 100},
		"a port is no tag": {running("r:5000/app"), []func(*corev1.Node){having(large, "r:5000/app:latest")},
			3, 100},
		"one of two containers": {running("app:1", "b:1"), []func(*corev1.Node){having(1000*mebibyte, "app:1")}, 3,
			49},
		"both containers the same": {running("app:1", "app:1"), []func(*corev1.Node){having(1000*mebibyte, "app:1")},
			3, 100},
		"an init container":        {withInit, []func(*corev1.Node){having(1000*mebibyte, "init:1")}, 3, 49},
		"an image volume":          {withVolume, []func(*corev1.Node){having(1000*mebibyte, "model:latest")}, 3, 49},
		"a Pod without containers": {running(), []func(*corev1.Node){having(large, "app:1")}, 3, -1},
		"large enough only together": {running("app:1", "b:1"),
			[]func(*corev1.Node){having(40*mebibyte, "app:1", "b:1")}, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []*corev1.Node{rulestest.Node("n0", test.here...)}
			for i := 1; i < 4; i++ {
				n := rulestest.Node(fmt.Sprintf("n%d", i))
				if i <= test.also {
					n = rulestest.Node(n.Name, test.here...)
				}
				nodes = append(nodes, n)
			}
			scores := rulestest.New(t, nodes...).Scores(imagelocality.Rule(), test.pod)
			if got, some := scores["n0"]; some != (test.want >= 0) || some && got != test.want {
				t.Errorf("scores are %v, want %d", scores, test.want)
			}
		})
	}
}

// Pods of one class have the same images in the same order.
func TestKey(t *testing.T) {
	if !rulestest.SameClass(imagelocality.Rule(), running("a", "b:1"), running("a:latest", "b:1")) {
		t.Error("two names of one image make two classes")
	}
	for _, other := range [][]string{{"a"}, {"a", "a"}, {"a", "c"}, {"ab"}} {
		if rulestest.SameClass(imagelocality.Rule(), running("a", "b"), running(other...)) {
			t.Errorf("images %v make no other class", other)
		}
	}
}
