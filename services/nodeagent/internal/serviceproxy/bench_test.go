package serviceproxy

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/nettest"
	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

const (
	benchServices  = 5000
	benchEndpoints = 10
)

// crowd stores many Services with many endpoints; nothing is written to the kernel yet.
func crowd(p *proxy) {
	for i := range benchServices {
		s, endpoints := numbered(i, 0)
		_ = p.Services.GetStore().Add(s)
		_ = p.Slices.GetStore().Add(endpoints)
	}
}

func numbered(i, shift int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	s := servicetest.New(func(s *corev1.Service) {
		s.Name = fmt.Sprintf("service-%d", i)
		s.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	})
	var words []string
	for e := range benchEndpoints {
		n := i*benchEndpoints + e + shift
		words = append(words, fmt.Sprintf("10.%d.%d.%d there", 100+n/62500, n/250%250, n%250+1))
	}
	endpoints := servicetest.Slice(discoveryv1.AddressTypeIPv4, 8080, words...)
	endpoints.Namespace, endpoints.Name = s.Namespace, s.Name
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	return s, endpoints
}

func cpu() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func benchmark(b *testing.B, run func(p *proxy, i int)) {
	runtime.LockOSThread()
	if err := nettest.Enter(); err != nil {
		b.Skip("needs root")
	}
	p := newProxy(&testing.T{}, "keelson-bench")
	crowd(p)
	written(b, p)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	for i := range b.N {
		run(p, i)
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkServices measures what 5,000 Services with 50,000 endpoints cost a node.
func BenchmarkServices(b *testing.B) {
	b.Run("whole", func(b *testing.B) {
		benchmark(b, func(p *proxy, _ int) {
			if err := Remove(p.Table); err != nil {
				b.Fatal(err)
			}
			p.pending.addAll()
			written(b, p)
		})
	})
	b.Run("taken-over", func(b *testing.B) {
		benchmark(b, func(p *proxy, _ int) {
			p.pending.addAll()
			written(b, p)
		})
	})
	b.Run("change", func(b *testing.B) { // of one endpoint of one Service
		benchmark(b, func(p *proxy, i int) {
			_, endpoints := numbered(i%benchServices, 1+i/benchServices)
			_ = p.Slices.GetStore().Add(endpoints)
			p.setSlice(endpoints)
			written(b, p)
		})
	})
	b.Run("memory", memory)
}

func written(b *testing.B, p *proxy) {
	b.Helper()
	if err := p.Sync(); err != nil {
		b.Fatal(err)
	}
}

// memory is what the proxy keeps, its objects included.
func memory(b *testing.B) {
	runtime.LockOSThread()
	if err := nettest.Enter(); err != nil {
		b.Skip("needs root")
	}
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := newProxy(&testing.T{}, "keelson-bench")
		crowd(p)
		written(b, p)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		runtime.KeepAlive(p)
	}
}
