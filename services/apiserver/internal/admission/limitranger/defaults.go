package limitranger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// annotation tells what a Pod was given.
const annotation = "kubernetes.io/limit-ranger"

// complete gives the Pod's containers the default requests and limits that they leave out, and notes which.
func complete(pod *corev1.Pod, ranges []*corev1.LimitRange) {
	for _, r := range ranges {
		var given []string
		requests, limits := containerDefaults(r)
		for i := range pod.Spec.Containers {
			given = append(given, completeContainer(&pod.Spec.Containers[i], "container", requests, limits)...)
		}
		for i := range pod.Spec.InitContainers {
			given = append(given, completeContainer(&pod.Spec.InitContainers[i], "init container", requests, limits)...)
		}
		if len(given) == 0 {
			continue
		}
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[annotation] = "LimitRanger plugin set: " + strings.Join(given, "; ")
	}
}

func containerDefaults(r *corev1.LimitRange) (requests, limits corev1.ResourceList) {
	requests, limits = corev1.ResourceList{}, corev1.ResourceList{}
	for i := range r.Spec.Limits {
		if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, item.DefaultRequest)
			maps.Copy(limits, item.Default)
		}
	}
	return requests, limits
}

func completeContainer(c *corev1.Container, kind string, requests, limits corev1.ResourceList) []string {
	var given []string
	if names := fill(&c.Resources.Requests, requests); len(names) > 0 {
		given = append(given, fmt.Sprintf("%s request for %s %s", strings.Join(names, ", "), kind, c.Name))
	}
	if names := fill(&c.Resources.Limits, limits); len(names) > 0 {
		given = append(given, fmt.Sprintf("%s limit for %s %s", strings.Join(names, ", "), kind, c.Name))
	}
	return given
}

// fill adds to have what only others name, and returns the names that it added.
func fill(have *corev1.ResourceList, others corev1.ResourceList) []string {
	var added []string
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if _, set := (*have)[name]; set {
			continue
		}
		if *have == nil {
			*have = corev1.ResourceList{}
		}
		(*have)[name] = others[name].DeepCopy()
		added = append(added, string(name))
	}
	return added
}
