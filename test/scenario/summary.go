package scenario

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// scratchBytes is about what the quiet Pod has written into its volume.
const scratchBytes = 900_000

// expectStatsSummary checks that the node of the quiet Pod reports all resource usage to a client that may ask
// through the apiserver.
func expectStatsSummary(w *World) {
	w.Helper()
	w.Kubectl("exec", "quiet", "--", "sh", "-c", "seq 1 150000 > /scratch/data")
	pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "quiet", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var before, after *statsapi.Summary
	w.Await("the Summary to tell what the Pod uses", func() Answer {
		var said string
		before, said = statsSummary(w, pod.Spec.NodeName, "")
		return incomplete(before, pod.UID, said)
	})
	lean, said := statsSummary(w, pod.Spec.NodeName, "?only_cpu_and_memory=true")
	if p := summaryOf(lean, pod.UID); p == nil || p.CPU == nil || p.Memory == nil || p.Network != nil ||
		p.VolumeStats != nil || lean.Node.Fs != nil || lean.Node.CPU == nil {
		w.Errorf("the Summary of processor and memory alone says\n%s", said)
	}
	after, said = statsSummary(w, pod.Spec.NodeName, "")
	if p := summaryOf(after, pod.UID); p == nil || *p.CPU.UsageCoreNanoSeconds <
		*summaryOf(before, pod.UID).CPU.UsageCoreNanoSeconds ||
		*p.Network.RxBytes < *summaryOf(before, pod.UID).Network.RxBytes {
		w.Errorf("a running total of the quiet Pod is missing or has fallen:\n%s", said)
	}
}

// statsSummary asks a node, and returns its answer also as it was said.
func statsSummary(w *World, node, query string) (*statsapi.Summary, string) {
	w.Helper()
	said := w.Kubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary"+query)
	summary := &statsapi.Summary{}
	if err := json.Unmarshal([]byte(said), summary); err != nil {
		w.Fatalf("%v in %s", err, said)
	}
	return summary, said
}

func summaryOf(summary *statsapi.Summary, uid types.UID) *statsapi.PodStats {
	for i := range summary.Pods {
		if summary.Pods[i].PodRef.UID == string(uid) {
			return &summary.Pods[i]
		}
	}
	return nil
}

// incomplete returns the answer if something is missing in it.
func incomplete(summary *statsapi.Summary, uid types.UID, said string) Answer {
	node, pod := summary.Node, summaryOf(summary, uid)
	switch {
	case node.CPU == nil, node.Memory == nil, node.Network == nil, node.Fs == nil, node.Rlimit == nil:
	case node.Runtime == nil || node.Runtime.ImageFs == nil || node.Runtime.ImageFs.CapacityBytes == nil:
	case pod == nil, pod.CPU == nil, pod.Memory == nil, pod.ProcessStats == nil, pod.EphemeralStorage == nil:
	case pod.Network == nil || pod.Network.Name != "eth0" || *pod.Network.RxBytes == 0:
	case len(pod.Containers) != 1:
	case pod.Containers[0].CPU == nil, pod.Containers[0].Rootfs == nil, pod.Containers[0].Logs == nil:
	case slices.ContainsFunc(pod.VolumeStats, holdsScratch):
		return ""
	}
	return Saw(said)
}

func holdsScratch(v statsapi.VolumeStats) bool {
	return v.Name == "scratch" && *v.UsedBytes >= scratchBytes && *v.UsedBytes < 2*scratchBytes
}
