package podset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What one change of a Pod costs among ten thousand of one owner, spread over a hundred nodes.
func BenchmarkChanges(b *testing.B) {
	const size = 10_000
	pods := make([]*corev1.Pod, size)
	for n := range pods {
		pods[n] = newPod(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)), "o", readySince(start))
		pods[n].Spec.NodeName = fmt.Sprint("node-", n%100)
	}
	full := func() *Index {
		index := NewIndex()
		for _, pod := range pods {
			index.Upsert(pod)
		}
		index.Observe("o", web, start)
		return index
	}
	b.Run("update", func(b *testing.B) {
		index := full()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			index.Upsert(pods[n%size])
		}
	})
	b.Run("remove-add", func(b *testing.B) {
		index := full()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			index.Delete(pods[n%size])
			index.Upsert(pods[n%size])
		}
	})
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			full()
		}
	})
}
