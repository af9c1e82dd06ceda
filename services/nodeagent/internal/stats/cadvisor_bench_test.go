package stats

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
)

// BenchmarkScrape measures one scrape of a node with 100 Pods of a container each, read from cgroups of this
// machine. It leaves networks out: nothing runs in these cgroups.
func BenchmarkScrape(b *testing.B) {
	kernel := cgroup.NewHost(cgroup.Cgroupfs)
	tree, err := cgroup.NewTree(kernel, cgroup.Cgroupfs, fmt.Sprintf("/keelson-bench-%d", os.Getpid()), 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := kernel.Remove(tree.Path(nil, "")); err != nil {
			b.Error(err)
		}
	})
	var pods []Pod
	for i := range 100 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint("pod-", i),
			Namespace: "ns"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
		if err := kernel.Ensure(tree.Path(pod, "c"), cgroup.Limits{CPUShares: 2}); err != nil {
			b.Fatal(err)
		}
		pods = append(pods, Pod{Pod: pod, Running: []observed.Container{{ID: "c", Name: "app", StartedAt: time.Now()}}})
	}
	c := NewCollector(Config{Proc: "/proc", Sys: "/sys", Usage: tree, Pods: func() []Pod { return pods },
		DiskKnown: func() *diskusage.Found { return nil }})
	for _, of := range []struct {
		name    string
		handler http.Handler
	}{{"cadvisor", c.CAdvisor()}, {"resource", c.Resource()}} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.last = nil // as if the last reading was long ago
				w := httptest.NewRecorder()
				of.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
