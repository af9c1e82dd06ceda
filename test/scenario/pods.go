package scenario

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/podview"
)

// Pods returns the namespace's Pods that match the label selector.
func (w *World) Pods(selector string) []corev1.Pod {
	w.Helper()
	var pods []corev1.Pod
	w.Await("a list of Pods", func() Answer {
		list, err := w.Client.CoreV1().Pods(w.Namespace).List(w.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return Saw(err.Error())
		}
		pods = list.Items
		return ""
	})
	return pods
}

// deletePod deletes a Pod and returns it as the API had it last.
func deletePod(w *World, name string) *corev1.Pod {
	w.Helper()
	watcher, err := w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		w.Fatalf("watching the Pod: %v", err)
	}
	defer watcher.Stop()
	w.Kubectl("delete", "pod", name, "--wait=false")
	deadline := time.After(patience)
	for {
		select {
		case event := <-watcher.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Deleted {
				return pod
			}
		case <-deadline:
			w.Fatalf("Pod %s did not go in %v", name, patience)
		}
	}
}

// awaitPod waits until a Pod is as is says.
func awaitPod(w *World, name string, is func(*corev1.Pod) bool) (pod *corev1.Pod) {
	w.Helper()
	w.Await("Pod "+name, func() Answer {
		var err error
		if pod, err = w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), name, metav1.GetOptions{}); err != nil {
			return Saw(err.Error())
		}
		if !is(pod) {
			return Sawf("%s, %+v %+v", pod.Status.Phase, pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		}
		return ""
	})
	return pod
}

// awaitActive waits until exactly so many Pods match that are not on their way out, all ready, and returns them.
func (w *World) awaitActive(selector string, count int) []corev1.Pod {
	w.Helper()
	var active []corev1.Pod
	w.Await(fmt.Sprintf("%d active Pods of %s", count, selector), func() Answer {
		active = nil
		ready := 0
		for _, pod := range w.Pods(selector) {
			if !podview.IsActive(&pod) {
				continue
			}
			active = append(active, pod)
			if podview.IsReady(&pod) {
				ready++
			}
		}
		if len(active) != count || ready != count {
			return Sawf("%d, %d of them ready", len(active), ready)
		}
		return ""
	})
	return active
}

// awaitPhases waits until all Pods of a selector are in one of these phases.
func awaitPhases(w *World, selector string, phases ...corev1.PodPhase) (pods []corev1.Pod) {
	w.Helper()
	w.Await(fmt.Sprintf("all Pods of %s to be %v", selector, phases), func() Answer {
		pods = w.Pods(selector)
		for i := range pods {
			if phase := pods[i].Status.Phase; !slices.Contains(phases, phase) {
				return Sawf("%s is %s", pods[i].Name, phase)
			}
		}
		return ""
	})
	return pods
}

// pod reads the Pod of that name.
func (w *World) pod(name string) *corev1.Pod {
	w.Helper()
	var p *corev1.Pod
	w.Await("an answer about Pod "+name, func() Answer {
		var err error
		if p, err = w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), name, metav1.GetOptions{}); err == nil {
			return ""
		}
		if apierrors.IsNotFound(err) {
			w.Fatalf("reading Pod %s: %v", name, err)
		}
		return Saw(err.Error())
	})
	return p
}

// podUIDs returns the sorted UIDs of the web Pods.
func (w *World) podUIDs(selector string) string {
	w.Helper()
	set := map[types.UID]bool{}
	for _, pod := range w.Pods(selector) {
		set[pod.UID] = true
	}
	return fmt.Sprint(set)
}
