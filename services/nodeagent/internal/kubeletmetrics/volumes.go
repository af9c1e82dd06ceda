package kubeletmetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

var (
	volumeCapacity   = volumeDesc("capacity_bytes", "Capacity in bytes of the volume")
	volumeAvailable  = volumeDesc("available_bytes", "Number of available bytes in the volume")
	volumeUsed       = volumeDesc("used_bytes", "Number of used bytes in the volume")
	volumeInodes     = volumeDesc("inodes", "Maximum number of inodes in the volume")
	volumeInodesFree = volumeDesc("inodes_free", "Number of free inodes in the volume")
	volumeInodesUsed = volumeDesc("inodes_used", "Number of used inodes in the volume")
	volumeAbnormal   = volumeDesc("health_status_abnormal", "Abnormal volume health status. The count is either 1 or "+
		"0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy")
)

func volumeDesc(name, help string) *prometheus.Desc {
	return desc("kubelet_volume_stats_"+name, help, "namespace", "persistentvolumeclaim")
}

// Volumes collects, at each scrape, what the volumes of claims hold: from the last survey of the disk, and from the
// last answers of CSI drivers.
type Volumes struct {
	Pods func() []*corev1.Pod
	// Disk returns at once the result of the last survey, and starts another if that is old.
	Disk func() *diskusage.Found
	// Drivers returns at once the last answers of drivers, and starts to ask again where they are old.
	Drivers func() volumestats.Answers
}

// Describe implements prometheus.Collector.
func (Volumes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{volumeCapacity, volumeAvailable, volumeUsed, volumeInodes, volumeInodesFree,
		volumeInodesUsed, volumeAbnormal} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What is not known yet is left out.
func (v Volumes) Collect(ch chan<- prometheus.Metric) {
	found, drivers := v.Disk(), v.Drivers()
	if found == nil {
		found = &diskusage.Found{}
	}
	told := map[types.NamespacedName]bool{} // several Pods may share a claim
	for _, pod := range v.Pods() {
		for i := range pod.Spec.Volumes {
			of := &pod.Spec.Volumes[i]
			claim := types.NamespacedName{Namespace: pod.Namespace, Name: podview.ClaimName(pod, of)}
			if claim.Name == "" || told[claim] {
				continue
			}
			if volume, measured := found.Pods[pod.UID].Volumes[of.Name]; measured {
				tellVolume(ch, claim, volume)
				told[claim] = true
			} else if figures, known := drivers(pod, of); known {
				tellFigures(ch, claim, figures)
				told[claim] = true
			}
		}
	}
}

// tellFigures reports what a driver knows of a volume.
func tellFigures(ch chan<- prometheus.Metric, claim types.NamespacedName, f volumestats.Figures) {
	for _, row := range []struct {
		desc  *prometheus.Desc
		value *uint64
	}{
		{volumeCapacity, f.Bytes.Total}, {volumeAvailable, f.Bytes.Available}, {volumeUsed, f.Bytes.Used},
		{volumeInodes, f.Inodes.Total}, {volumeInodesFree, f.Inodes.Available}, {volumeInodesUsed, f.Inodes.Used},
	} {
		if row.value != nil {
			ch <- prometheus.MustNewConstMetric(row.desc, prometheus.GaugeValue, float64(*row.value), claim.Namespace,
				claim.Name)
		}
	}
	if f.Condition == nil {
		return
	}
	abnormal := 0.0
	if f.Condition.Abnormal {
		abnormal = 1
	}
	ch <- prometheus.MustNewConstMetric(volumeAbnormal, prometheus.GaugeValue, abnormal, claim.Namespace, claim.Name)
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
