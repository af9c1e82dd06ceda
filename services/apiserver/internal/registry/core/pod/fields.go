package pod

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/resource"
)

// fields are the field selectors. Each nodeagent watches the Pods of its node, so these are indexed.
var fields = []resource.Field[*corev1.Pod]{
	{Label: "spec.nodeName", Value: func(p *corev1.Pod) string { return p.Spec.NodeName }, Indexed: true},
	{Label: "spec.restartPolicy", Value: func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) }},
	{Label: "spec.schedulerName", Value: func(p *corev1.Pod) string { return p.Spec.SchedulerName }},
	{Label: "spec.serviceAccountName", Value: func(p *corev1.Pod) string { return p.Spec.ServiceAccountName }},
	{Label: "spec.hostNetwork", Value: func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) }},
	{Label: "status.phase", Value: func(p *corev1.Pod) string { return string(p.Status.Phase) }},
	{Label: "status.podIP", Value: func(p *corev1.Pod) string { return podIP(&p.Status) }},
	{Label: "status.nominatedNodeName", Value: func(p *corev1.Pod) string { return p.Status.NominatedNodeName }},
}

// podIP is the Pod's primary address.
func podIP(status *corev1.PodStatus) string {
	if len(status.PodIPs) > 0 {
		return status.PodIPs[0].IP
	}
	return status.PodIP
}
