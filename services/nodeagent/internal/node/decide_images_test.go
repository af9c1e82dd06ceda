package node

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
)

func TestImages(t *testing.T) {
	got := Images([]runtime.Image{
		{ID: "1", Tags: []string{"small:1"}, Size: 1}, {ID: "2", Size: 99},
		{ID: "3", Digests: []string{"big@sha256:0"}, Tags: []string{"big:1", "big:2", "big:3", "big:4", "big:5"},
			Size: 7},
		{ID: "4", Tags: []string{"b:1"}, Size: 3}, {ID: "5", Tags: []string{"a:1"}, Size: 3},
		{ID: "6", Tags: []string{"five:1", "five:2", "five:3", "five:4", "five:5"}, Size: 8},
	})
	want := []corev1.ContainerImage{
		{Names: []string{"five:1", "five:2", "five:3", "five:4", "five:5"}, SizeBytes: 8},
		{Names: []string{"big@sha256:0", "big:1", "big:2", "big:3", "big:4"}, SizeBytes: 7},
		{Names: []string{"a:1"}, SizeBytes: 3}, {Names: []string{"b:1"}, SizeBytes: 3},
		{Names: []string{"small:1"}, SizeBytes: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("images %v, want %v", got, want)
	}
}

// Of many images the 50 largest are reported.
func TestImagesAreBounded(t *testing.T) {
	for n, want := range map[int]int{0: 0, 50: 50, 51: 50} {
		var images []runtime.Image
		for i := range n {
			images = append(images, runtime.Image{Tags: []string{fmt.Sprint("image:", i)}, Size: uint64(i)})
		}
		got := Images(images)
		if len(got) != want {
			t.Errorf("%d of %d images are reported, want %d", len(got), n, want)
		}
		if n > 50 && (got[0].SizeBytes != 50 || got[49].SizeBytes != 1) {
			t.Errorf("of sizes 0 to 50 the first reported is %d and the last %d, want 50 and 1", got[0].SizeBytes,
				got[49].SizeBytes)
		}
	}
}
