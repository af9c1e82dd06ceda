package kubeletmetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/diskusage"
)

var (
	volumeCapacity   = volumeDesc("capacity_bytes", "Capacity in bytes of the volume")
	volumeAvailable  = volumeDesc("available_bytes", "Number of available bytes in the volume")
	volumeUsed       = volumeDesc("used_bytes", "Number of used bytes in the volume")
	volumeInodes     = volumeDesc("inodes", "Maximum number of inodes in the volume")
	volumeInodesFree = volumeDesc("inodes_free", "Number of free inodes in the volume")
	volumeInodesUsed = volumeDesc("inodes_used", "Number of used inodes in the volume")
)

func volumeDesc(name, help string) *prometheus.Desc {
	return desc("kubelet_volume_stats_"+name, help, "namespace", "persistentvolumeclaim")
}

// Volumes collects, at each scrape, what the volumes of claims hold, from the last survey of the disk.
type Volumes struct {
	Pods func() []*corev1.Pod
	// Disk returns at once the result of the last survey, and starts another if that is old.
	Disk func() *diskusage.Found
}

// Describe implements prometheus.Collector.
func (Volumes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{volumeCapacity, volumeAvailable, volumeUsed, volumeInodes, volumeInodesFree,
		volumeInodesUsed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Before the end of the first survey it collects nothing.
func (v Volumes) Collect(ch chan<- prometheus.Metric) {
	found := v.Disk()
	if found == nil {
		return
	}
	told := map[types.NamespacedName]bool{} // several Pods may share a claim
	for _, pod := range v.Pods() {
		for i := range pod.Spec.Volumes {
			of := &pod.Spec.Volumes[i]
			volume, measured := found.Pods[pod.UID].Volumes[of.Name]
			if !measured || of.PersistentVolumeClaim == nil && of.Ephemeral == nil {
				continue
			}
			claim := types.NamespacedName{Namespace: pod.Namespace, Name: podview.ClaimName(pod, of)}
			if !told[claim] {
				told[claim] = true
				tellVolume(ch, claim, volume)
			}
		}
	}
}

func tellVolume(ch chan<- prometheus.Metric, claim types.NamespacedName, v diskusage.Volume) {
	gauge := func(d *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, claim.Namespace, claim.Name)
	}
	gauge(volumeCapacity, float64(v.Space.Bytes))
	gauge(volumeAvailable, float64(v.BytesAvailable))
	gauge(volumeUsed, float64(v.Usage.Bytes))
	gauge(volumeInodesUsed, float64(v.Usage.Inodes))
	if v.Space.Inodes > 0 { // not all file systems count them
		gauge(volumeInodes, float64(v.Space.Inodes))
		gauge(volumeInodesFree, float64(v.InodesFree))
	}
}
