package servertest_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

// BenchmarkCreate compares the processor time of creating an object of a defined kind with that of a ConfigMap of its
// size, both as JSON, client and store included.
func BenchmarkCreate(b *testing.B) {
	s := servertest.Start(b)
	define(b, s.ConfigAs(servertest.Admin), widgetDefinition(b))
	text := strings.Repeat("x", 1000)
	for _, kind := range []struct{ name, path, body string }{
		{"ConfigMap", "/api/v1/namespaces/default/configmaps",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"size":"3","color":"red",` +
				`"text":"` + text + `"}}`},
		{"Widget", "/apis/example.com/v1/namespaces/default/widgets",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"%s"},"spec":{"size":3,"color":"red",` +
				`"free":{"text":"` + text + `"}}}`},
	} {
		run := 0
		post(b, s.Client.CoreV1().RESTClient(), kind.path, fmt.Sprintf(kind.body, "first")) // of a new kind it waits
		b.Run(kind.name, func(b *testing.B) {
			run++
			before := processorTime(b)
			for i := range b.N {
				body := fmt.Sprintf(kind.body, fmt.Sprintf("o-%d-%d", run, i))
				post(b, s.Client.CoreV1().RESTClient(), kind.path, body)
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

func post(b *testing.B, client rest.Interface, path, body string) {
	b.Helper()
	if err := client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(
		b.Context()).Error(); err != nil {
		b.Fatal(err)
	}
}

// processorTime is what the process has taken.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
