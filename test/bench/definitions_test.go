package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

const (
	definitions = 500
	objectsEach = 10
	// watchedTimes is how often each thing is timed.
	watchedTimes = 9
)

// widgetGroup is the group of all kinds that the benchmarks define.
const widgetGroup = "bench.example.com"

// BenchmarkDefinitions measures an apiserver with 500 kinds that were defined, each with ten objects: its memory, how
// long it takes to start, and how soon kubectl knows a kind from the moment at which its definition is acknowledged.
func BenchmarkDefinitions(b *testing.B) {
	m := processes.New(b, 0)
	client := connect(b, m)
	for _, d := range []mesh.Daemon{mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC} {
		m.Kill(b, d)
	}
	raw := client.CoreV1().RESTClient()
	report := func(name string) {
		outer := b // The restarted process outlives the part in which its start is timed.
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(median(func() time.Duration { return startAnew(outer, m, raw) }), "start-ms")
			server := newMeter(b, m, mesh.APIServer)
			server.settle()
			b.ReportMetric(server.memoryMiB("VmRSS")[mesh.APIServer], "apiserver-MiB")
			b.ReportMetric(server.memoryMiB("RssAnon")[mesh.APIServer], "apiserver-anonymous-MiB")
			kind := 0
			b.ReportMetric(median(func() time.Duration {
				kind++
				return untilKnown(b, raw, fmt.Sprintf("beside%ss%03d", name, kind))
			}), "known-ms")
		})
	}
	report("none")
	each(b, definitions, func(ctx context.Context, i int) error { return define(ctx, raw, kindName(i)) })
	for i := range definitions {
		awaitKind(b, raw, kindName(i))
	}
	each(b, definitions*objectsEach, func(ctx context.Context, i int) error {
		return createWidget(ctx, raw, kindName(i/objectsEach), i)
	})
	report("500")
}

func kindName(i int) string { return fmt.Sprintf("widgets%03d", i) }

// define makes a kind by its plural name.
func define(ctx context.Context, raw rest.Interface, plural string) error {
	return post(ctx, raw, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},
		"spec":{"group":"%[2]s","scope":"Namespaced","names":{"plural":"%[1]s","singular":"of%[1]s","kind":"Of%[1]s"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{
		"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1},
		"color":{"type":"string","default":"red"},"data":{"type":"string"}}},
		"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, plural, widgetGroup))
}

// createWidget makes an object of a kind, of the size of configMap's.
func createWidget(ctx context.Context, raw rest.Interface, plural string, i int) error {
	return post(ctx, raw, widgetsPath(plural), fmt.Sprintf(
		`{"apiVersion":"%s/v1","kind":"Of%s","metadata":{"name":"object-%05d"},"spec":{"size":3,"data":"%s"}}`,
		widgetGroup, plural, i, strings.Repeat("a", 1024)))
}

func widgetsPath(plural string) string {
	return "/apis/" + widgetGroup + "/v1/namespaces/" + namespace + "/" + plural
}

func post(ctx context.Context, raw rest.Interface, path, body string) error {
	const form = "application/json"
	request := raw.Post().AbsPath(path).SetHeader("Content-Type", form).SetHeader("Accept", form).Body([]byte(body))
	return request.Do(ctx).Error()
}

// startAnew kills the apiserver, starts it, and returns how long that took until it was ready.
func startAnew(b *testing.B, m *processes.Mesh, raw rest.Interface) time.Duration {
	b.Helper()
	begun := time.Now()
	m.Restart(b, mesh.APIServer)
	for {
		if err := raw.Get().AbsPath("/readyz").Do(b.Context()).Error(); err == nil {
			return time.Since(begun)
		}
		if time.Since(begun) > patience {
			b.Fatal("the apiserver does not get ready")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// untilKnown defines a kind and returns how long it took until discovery, which kubectl asks, named it.
func untilKnown(b *testing.B, raw rest.Interface, plural string) time.Duration {
	b.Helper()
	if err := define(b.Context(), raw, plural); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	awaitKind(b, raw, plural)
	return time.Since(begun)
}

// awaitKind waits until the aggregated discovery document names a kind.
func awaitKind(b *testing.B, raw rest.Interface, plural string) {
	b.Helper()
	const document = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		text, err := raw.Get().AbsPath("/apis").SetHeader("Accept", document).Do(b.Context()).Raw()
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(text), `"resource":"`+plural+`"`) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("nobody knows %s", plural)
		}
	}
}

// median times a thing again and again, and returns the middle one in milliseconds.
func median(took func() time.Duration) float64 {
	times := make([]time.Duration, watchedTimes)
	for i := range times {
		times[i] = took()
	}
	return quantile(times, 50)
}

// createWidgets is a phase of BenchmarkAPI, as is createJSONConfigMaps with which it is compared.
func createWidgets(b *testing.B, client kubernetes.Interface) request {
	b.Helper()
	const plural = "widgets"
	raw := client.CoreV1().RESTClient()
	if err := define(b.Context(), raw, plural); err != nil {
		b.Fatal(err)
	}
	awaitKind(b, raw, plural)
	return func(ctx context.Context, i int) error { return createWidget(ctx, raw, plural, i) }
}

func createJSONConfigMaps(_ *testing.B, client kubernetes.Interface) request {
	raw, path := client.CoreV1().RESTClient(), "/api/v1/namespaces/"+namespace+"/configmaps"
	return func(ctx context.Context, i int) error {
		return post(ctx, raw, path, fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"object-%05d"},"data":{"size":"3","data":"%s"}}`,
			i, strings.Repeat("a", 1024)))
	}
}
