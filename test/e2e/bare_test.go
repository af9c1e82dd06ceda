package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/test/mesh"
	"keelson.dev/test/scenario"
)

// bareNodes is a world of nodes without an agent: Pods get nodes and never start.
type bareNodes struct{ *scenario.World }

// bare is a world on a mesh without nodes, which is so again when the test ends.
func bare(t testing.TB, m mesh.Mesh) bareNodes {
	t.Helper()
	s := bareNodes{scenario.In(t, m)}
	clearAway(s.World, s.Namespace)
	return s
}

// clearAway ends a namespace at the end of the test on a mesh whose nodes are all stand-ins, and these with it: Pods
// are deleted at once, since no agent ends them.
func clearAway(w *scenario.World, namespace string) {
	w.Cleanup(func() {
		core := w.Client.CoreV1()
		err := core.Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
		if err != nil {
			w.Errorf("deleting %s: %v", namespace, err)
		}
		atOnce := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		err = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				if err := core.Pods(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
					return false, err
				}
				_, err := core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return true, nil
				}
				return false, err
			})
		if err != nil {
			w.Errorf("clearing %s away: %v", namespace, err)
		}
		err = core.Nodes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			w.Errorf("clearing the nodes away: %v", err)
		}
	})
}

// node makes a node without an agent.
func (s bareNodes) node(name, cpu string, labels map[string]string) {
	s.Helper()
	if err := standIn(s.Context(), s.Client.CoreV1().Nodes(), name, cpu, labels); err != nil {
		s.Fatal(err)
	}
}

// standIn makes a node and patches its status to ready and with room, which does not conflict with writes of
// daemons meanwhile.
func standIn(ctx context.Context, nodes typedcorev1.NodeInterface, name, cpu string, labels map[string]string) error {
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making node %s: %w", name, err)
	}
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"),
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi")}
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	if err != nil {
		return fmt.Errorf("the status of node %s: %w", name, err)
	}
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("reporting node %s: %w", name, err)
	}
	return nil
}

// run makes a Pod that tolerates every taint, and takes one more resource if that is named.
func (s bareNodes) run(name, cpu string, managed corev1.ResourceName, priority int32, change ...func(*corev1.Pod)) {
	s.Helper()
	ask := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if managed != "" {
		ask[managed] = resource.MustParse("1")
	}
	class := ""
	if priority > 0 {
		class = fmt.Sprintf("%s-%d", s.Namespace, priority)
		s.KubectlWith(
			fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d}",
				class, priority), "apply", "-f", "-")
		s.Cleanup(func() {
			_ = s.Client.SchedulingV1().PriorityClasses().Delete(context.Background(), class, metav1.DeleteOptions{})
		})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), PriorityClassName: class,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: ask, Limits: ask}}},
	}}
	for _, f := range change {
		f(pod)
	}
	s.Await("Pod "+name+" to be taken", func() scenario.Answer { // the namespace's account may not be there yet
		if _, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
			return scenario.Saw(err.Error())
		}
		return ""
	})
}

func (s bareNodes) pod(name string) *corev1.Pod {
	s.Helper()
	p, err := s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// end deletes a Pod at once: its node has no agent.
func (s bareNodes) end(name string) {
	s.Helper()
	if err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		s.Fatal(err)
	}
}

// bound returns the node of a Pod as soon as it has one.
func (s bareNodes) bound(name string) (node string) {
	s.Helper()
	s.Await("a node for "+name, func() scenario.Answer {
		p := s.pod(name)
		if node = p.Spec.NodeName; node == "" {
			return scenario.Sawf("%+v", p.Status.Conditions)
		}
		return ""
	})
	return node
}
