package stats

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// rest is what a Summary contains besides CPU and memory.
type rest struct {
	networks *networks
	// processes is their number, including threads; nil if unknown. maxPIDs is the maximum.
	processes *int64
	maxPIDs   int64
	// space is the size of the Pods' file system, disk the result of the last survey of the disk; it may be nil.
	space diskusage.Space
	disk  *diskusage.Found
	// drivers returns what CSI drivers say about volumes.
	drivers volumestats.Answers
}

// complete adds the rest to a summary of a reading.
func (more rest) complete(summary *statsapi.Summary, r *reading) {
	more.node(&summary.Node, r)
	for i := range summary.Pods {
		p, stats := &r.pods[i], &summary.Pods[i]
		stats.Network = more.networks.pods[p.UID].stats()
		stats.IO = io(p.usage.at, p.usage.Stalls.IO)
		for j := range stats.Containers {
			of := p.containers[j].usage
			stats.Containers[j].IO = io(of.at, of.Stalls.IO)
		}
		if !p.usage.at.IsZero() && p.usage.Pids > 0 {
			stats.ProcessStats = &statsapi.ProcessStats{ProcessCount: ptr.To(p.usage.Pids)}
		}
		var parcel diskusage.Parcel
		if more.disk != nil {
			parcel = more.disk.Pods[p.UID]
			more.pod(stats, parcel)
		}
		stats.VolumeStats = more.volumes(p.Pod.Pod, parcel)
	}
}

func (more rest) node(node *statsapi.NodeStats, r *reading) {
	at := metav1.NewTime(r.hostAt)
	node.Network = more.networks.node.stats()
	node.IO = io(r.hostAt, r.host.stalls.IO)
	node.Fs = space(at, more.space)
	node.Fs.UsedBytes = ptr.To(more.space.Bytes - more.space.BytesFree)
	if more.space.Inodes > 0 {
		node.Fs.InodesUsed = ptr.To(more.space.Inodes - more.space.InodesFree)
	}
	if more.disk != nil && more.disk.Images != nil {
		images := space(metav1.NewTime(more.disk.At), more.disk.Images.Space)
		images.UsedBytes, images.InodesUsed = more.disk.Images.ImageFs.Bytes, more.disk.Images.ImageFs.Inodes
		node.Runtime = &statsapi.RuntimeStats{ImageFs: images}
	}
	if more.processes != nil {
		node.Rlimit = &statsapi.RlimitStats{Time: at, NumOfRunningProcesses: more.processes}
		if more.maxPIDs > 0 {
			node.Rlimit.MaxPID = &more.maxPIDs
		}
	}
	if r.host.swapTotal > 0 {
		node.Swap = &statsapi.SwapStats{Time: at, SwapAvailableBytes: ptr.To(r.host.swapFree),
			SwapUsageBytes: ptr.To(r.host.swapUsed())}
	}
}

// pod adds what was measured of a Pod, which is nothing if it was not there then.
func (more rest) pod(stats *statsapi.PodStats, parcel diskusage.Parcel) {
	at := metav1.NewTime(more.disk.At)
	if parcel.Total != nil {
		stats.EphemeralStorage = used(at, more.space, *parcel.Total)
	}
	for i := range stats.Containers {
		c := &stats.Containers[i]
		if logs, ok := parcel.Logs[c.Name]; ok {
			c.Logs = used(at, more.space, logs)
		}
		if layer, ok := parcel.Layers[c.Name]; ok && more.disk.Images != nil {
			c.Rootfs = used(at, more.disk.Images.Space, layer)
		}
	}
}

// volumes returns the figures of a Pod's volumes: those that were measured, and those that a driver knows.
func (more rest) volumes(pod *corev1.Pod, parcel diskusage.Parcel) []statsapi.VolumeStats {
	var all []statsapi.VolumeStats
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		volume := statsapi.VolumeStats{Name: v.Name}
		if found, ok := parcel.Volumes[v.Name]; ok {
			volume.FsStats = *used(metav1.NewTime(more.disk.At), found.Space, found.Usage)
		} else if told, ok := more.drivers(pod, v); ok {
			volume.FsStats = toldBy(told)
		} else {
			continue
		}
		if name := podview.ClaimName(pod, v); name != "" {
			volume.PVCRef = &statsapi.PVCReference{Name: name, Namespace: pod.Namespace}
		}
		all = append(all, volume)
	}
	return all
}

// toldBy returns what a driver says about a volume.
func toldBy(f volumestats.Figures) statsapi.FsStats {
	return statsapi.FsStats{Time: metav1.NewTime(f.At),
		AvailableBytes: f.Bytes.Available, CapacityBytes: f.Bytes.Total, UsedBytes: f.Bytes.Used,
		InodesFree: f.Inodes.Available, Inodes: f.Inodes.Total, InodesUsed: f.Inodes.Used}
}

// used returns a file system's size together with what is used of it.
func used(at metav1.Time, on diskusage.Space, usage diskusage.Usage) *statsapi.FsStats {
	stats := space(at, on)
	stats.UsedBytes, stats.InodesUsed = ptr.To(uint64(usage.Bytes)), ptr.To(uint64(usage.Inodes))
	return stats
}

// space returns the size of a file system; not all count inodes.
func space(at metav1.Time, s diskusage.Space) *statsapi.FsStats {
	stats := &statsapi.FsStats{Time: at, CapacityBytes: &s.Bytes, AvailableBytes: &s.BytesAvailable}
	if s.Inodes > 0 {
		stats.Inodes, stats.InodesFree = &s.Inodes, &s.InodesFree
	}
	return stats
}

// stats returns nil for an unknown network.
func (n network) stats() *statsapi.NetworkStats {
	if n.at.IsZero() {
		return nil
	}
	out := &statsapi.NetworkStats{Time: metav1.NewTime(n.at)}
	for _, t := range n.interfaces {
		one := statsapi.InterfaceStats{Name: t.name, RxBytes: ptr.To(t.rxBytes), RxErrors: ptr.To(t.rxErrors),
			TxBytes: ptr.To(t.txBytes), TxErrors: ptr.To(t.txErrors)}
		if out.Interfaces = append(out.Interfaces, one); t.name == n.main {
			out.InterfaceStats = one
		}
	}
	return out
}
