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
		do   func(ctx context.Context, client kubernetes.Interface, i int) error
	}{
		{"ConfigMapCreate", createConfigMap},
		{"ConfigMapUpdate", updateConfigMap},
		{"PodCreate", createPod},
		{"PodUpdate", updatePod},
		{"PodDelete", deletePod},
	} {
		b.Run(phase.name, func(b *testing.B) {
			server.settle()
			before := server.now()
			b.ResetTimer()
			each(b, requests, func(ctx context.Context, i int) error { return phase.do(ctx, client, i) })
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

func createConfigMap(ctx context.Context, client kubernetes.Interface, i int) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(i, "a"), metav1.CreateOptions{})
	return err
}

func updateConfigMap(ctx context.Context, client kubernetes.Interface, i int) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, configMap(i, "b"), metav1.UpdateOptions{})
	return err
}

func createPod(ctx context.Context, client kubernetes.Interface, i int) error {
	p := pod(i)
	p.Spec.SchedulerName = "nobody"
	_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}

// updatePod reads the Pod first, as every client does; the read is not taken out of the figure.
func updatePod(ctx context.Context, client kubernetes.Interface, i int) error {
	p, err := client.CoreV1().Pods(namespace).Get(ctx, pod(i).Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.Labels["updated"] = "true"
	_, err = client.CoreV1().Pods(namespace).Update(ctx, p, metav1.UpdateOptions{})
	return err
}

func deletePod(ctx context.Context, client kubernetes.Interface, i int) error {
	return client.CoreV1().Pods(namespace).Delete(ctx, pod(i).Name, metav1.DeleteOptions{})
}
