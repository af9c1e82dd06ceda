package servertest

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkListsAmongWrites lists one kind after the other, each to be of the latest state, while others are written:
// what a namespace that goes, kubectl get all, and a daemon that starts do. ms/list is how long a list takes,
// CPU-ms/list what it and the write before it cost the whole process.
func BenchmarkListsAmongWrites(b *testing.B) {
	s := Start(b)
	ctx := b.Context()
	core := s.Client.CoreV1()
	var lists []func() error
	list := func(one func() error) { lists = append(lists, one) }
	all := metav1.ListOptions{}
	list(func() error { _, err := core.Secrets("").List(ctx, all); return err })
	list(func() error { _, err := core.Services("").List(ctx, all); return err })
	list(func() error { _, err := core.Pods("").List(ctx, all); return err })
	list(func() error { _, err := s.Client.AppsV1().Deployments("").List(ctx, all); return err })
	list(func() error { _, err := s.Client.BatchV1().Jobs("").List(ctx, all); return err })
	var listing time.Duration
	i := 0
	begun := cpu(b)
	for b.Loop() {
		written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n" + strconv.Itoa(i)}}
		if _, err := core.ConfigMaps("default").Create(ctx, written, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		if err := lists[i%len(lists)](); err != nil {
			b.Fatal(err)
		}
		listing += time.Since(now)
		i++
	}
	perList := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(i) }
	b.ReportMetric(perList(listing), "ms/list")
	b.ReportMetric(perList(cpu(b)-begun), "CPU-ms/list")
}

// cpu is what the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
