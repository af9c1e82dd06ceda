package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// requests is how many objects each phase of BenchmarkAPI writes.
const requests = 5000

// request is the i-th of a phase.
type request func(ctx context.Context, i int) error

// BenchmarkAPI measures single requests: the apiserver's process holds the store too. No scheduler wants the Pods.
func BenchmarkAPI(b *testing.B) {
	m := processes.New(b, 0)
	client := connect(b, m)
	for _, d := range []mesh.Daemon{mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC} {
		m.Kill(b, d)
	}
	server := newMeter(b, m, mesh.APIServer)
	for _, phase := range []struct {
		name string
		// prepare gathers what the requests need, outside of the figure.
		prepare func(b *testing.B, client kubernetes.Interface) request
	}{
		{"ConfigMapCreate", createConfigMaps},
		{"ConfigMapUpdate", updateConfigMaps},
		{"PodCreate", createPods},
		{"PodUpdate", updatePods},
		{"PodDelete", deletePods},
		{"ConfigMapCreateJSON", createJSONConfigMaps},
		{"WidgetCreateJSON", createWidgets},
	} {
		b.Run(phase.name, func(b *testing.B) {
			send := phase.prepare(b, client)
			before := server.start()
			b.ResetTimer()
			each(b, requests, send)
			b.StopTimer()
			server.report(b, before, requests, "op")
		})
	}
}

func configMap(i int, letter string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%05d", i)},
		Data:       map[string]string{"data": strings.Repeat(letter, 1024)},
	}
}

func createConfigMaps(_ *testing.B, client kubernetes.Interface) request {
	return func(ctx context.Context, i int) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(i, "a"), metav1.CreateOptions{})
		return err
	}
}

func updateConfigMaps(_ *testing.B, client kubernetes.Interface) request {
	return func(ctx context.Context, i int) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, configMap(i, "b"), metav1.UpdateOptions{})
		return err
	}
}

func createPods(_ *testing.B, client kubernetes.Interface) request {
	return func(ctx context.Context, i int) error {
		p := pod(i)
		p.Spec.SchedulerName = "nobody"
		_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	}
}

func updatePods(b *testing.B, client kubernetes.Interface) request {
	b.Helper()
	list, err := client.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatalf("reading the Pods: %v", err)
	}
	return func(ctx context.Context, i int) error {
		p := list.Items[i].DeepCopy()
		p.Labels["updated"] = "true"
		_, err := client.CoreV1().Pods(namespace).Update(ctx, p, metav1.UpdateOptions{})
		return err
	}
}

func deletePods(_ *testing.B, client kubernetes.Interface) request {
	return func(ctx context.Context, i int) error {
		return client.CoreV1().Pods(namespace).Delete(ctx, pod(i).Name, metav1.DeleteOptions{})
	}
}
