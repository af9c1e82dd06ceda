// Package containerconfig computes the configurations for a container runtime: of a Pod's sandbox and of each
// container instance. It is pure; packages podfiles and volume create the files that the configurations name.
//
// An error is one clear sentence. For a container it is the message of reason CreateContainerConfigError, for a
// sandbox that of the event FailedCreatePodSandBox.
//
//keelson:decision
package containerconfig

import (
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Annotations from which an agent that starts learns how to treat its containers, even if their Pod is gone from
// the API. The names are the kubelet's.
const (
	AnnotationHash                     = "io.kubernetes.container.hash"
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationGracePeriod              = "io.kubernetes.pod.terminationGracePeriod"
)

// Node is what the configurations of all Pods of a node share.
type Node struct {
	// ClusterDNS are the addresses of the cluster's DNS servers; empty if the cluster has none.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's names, for example cluster.local.
	ClusterDomain string
	// Resolver is the host's own name resolution.
	Resolver Resolver
	// Upstream are systemd-resolved's upstream servers, if the host has it.
	Upstream Resolver
	// SeccompRoot is the folder of localhost seccomp profiles.
	SeccompRoot string
	// SeccompDefault makes RuntimeDefault the profile of containers that name none.
	SeccompDefault bool
	// MemoryCapacity is the node's memory in bytes.
	MemoryCapacity int64
	// Memory determines the swap, protection and throttling of containers.
	Memory memory.Rules
	// SELinux reports whether the host has SELinux.
	SELinux bool
}

// Hash is equal for two containers that may share one instance: it changes with the fields that can be updated in a
// running Pod and require a new instance.
func Hash(container *corev1.Container) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q%q", container.Name, container.Image)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// podLabels returns the labels of sandboxes and containers; a sandbox also has those of its Pod.
func podLabels(pod *corev1.Pod) map[string]string {
	return map[string]string{
		runtime.LabelPodName:      pod.Name,
		runtime.LabelPodNamespace: pod.Namespace,
		runtime.LabelPodUID:       string(pod.UID),
	}
}

// int64Value wraps an optional number as CRI requires.
func int64Value(value *int64) *cri.Int64Value {
	if value == nil {
		return nil
	}
	return &cri.Int64Value{Value: *value}
}
