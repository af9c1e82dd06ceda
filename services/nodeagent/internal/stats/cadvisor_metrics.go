package stats

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
)

// groupLabels are the labels of every metric of a cgroup.
var groupLabels = []string{"container", "id", "image", "name", "namespace", "pod"}

// cadvisorDescs are all metrics with cadvisor's names.
var cadvisorDescs []*prometheus.Desc

// listed creates a metric and adds it to them.
func listed(name, help string, labels []string) *prometheus.Desc {
	d := desc(name, help, labels)
	cadvisorDescs = append(cadvisorDescs, d)
	return d
}

func cadvisorDesc(name, help string, more ...string) *prometheus.Desc {
	return listed(name, help, slices.Concat(groupLabels, more))
}

func machineDesc(name, help string) *prometheus.Desc {
	return listed(name, help, []string{"boot_id", "machine_id", "system_uuid"})
}

var (
	machineCores  = machineDesc("machine_cpu_cores", "Number of logical CPU cores.")
	machineMemory = machineDesc("machine_memory_bytes", "Amount of memory installed on the machine.")
	machineSwap   = machineDesc("machine_swap_bytes", "Amount of swap memory available on the machine.")

	cadvisorCPU = cadvisorDesc("container_cpu_usage_seconds_total",
		"Cumulative cpu time consumed in seconds.", "cpu")
	cadvisorCPUUser = cadvisorDesc("container_cpu_user_seconds_total",
		"Cumulative user cpu time consumed in seconds.")
	cadvisorCPUSystem = cadvisorDesc("container_cpu_system_seconds_total",
		"Cumulative system cpu time consumed in seconds.")
	cadvisorPeriods = cadvisorDesc("container_cpu_cfs_periods_total",
		"Number of elapsed enforcement period intervals.")
	cadvisorThrottledPeriods = cadvisorDesc("container_cpu_cfs_throttled_periods_total",
		"Number of throttled period intervals.")
	cadvisorThrottled = cadvisorDesc("container_cpu_cfs_throttled_seconds_total",
		"Total time duration the container has been throttled.")
	cadvisorMemory = cadvisorDesc("container_memory_usage_bytes",
		"Current memory usage in bytes, including all memory regardless of when it was accessed")
	cadvisorWorkingSet = cadvisorDesc("container_memory_working_set_bytes", "Current working set in bytes.")
	cadvisorRSS        = cadvisorDesc("container_memory_rss", "Size of RSS in bytes.")
	cadvisorCache      = cadvisorDesc("container_memory_cache", "Number of bytes of page cache memory.")
	cadvisorMapped     = cadvisorDesc("container_memory_mapped_file", "Size of memory mapped files in bytes.")
	cadvisorSwap       = cadvisorDesc("container_memory_swap", "Container swap usage in bytes.")
	cadvisorMaxMemory  = cadvisorDesc("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes")
	cadvisorFailCount  = cadvisorDesc("container_memory_failcnt", "Number of memory usage hits limits")
	cadvisorFaults     = cadvisorDesc("container_memory_failures_total",
		"Cumulative count of memory allocation failures.", "failure_type", "scope")
	cadvisorThreads = cadvisorDesc("container_threads", "Number of threads running inside the container")
	cadvisorStart   = cadvisorDesc("container_start_time_seconds",
		"Start time of the container since unix epoch in seconds.")
	cadvisorSeen = cadvisorDesc("container_last_seen", "Last time a container was seen by the exporter")

	specPeriod = cadvisorDesc("container_spec_cpu_period", "CPU period of the container.")
	specQuota  = cadvisorDesc("container_spec_cpu_quota", "CPU quota of the container.")
	specShares = cadvisorDesc("container_spec_cpu_shares", "CPU share of the container.")
	specMemory = cadvisorDesc("container_spec_memory_limit_bytes", "Memory limit for the container.")

	cadvisorFsUsage = cadvisorDesc("container_fs_usage_bytes",
		"Number of bytes that are consumed by the container on this filesystem.", "device")
	cadvisorFsLimit = cadvisorDesc("container_fs_limit_bytes",
		"Number of bytes that can be consumed by the container on this filesystem.", "device")
	cadvisorFsReads     = cadvisorDesc("container_fs_reads_total", "Cumulative count of reads completed", "device")
	cadvisorFsWrites    = cadvisorDesc("container_fs_writes_total", "Cumulative count of writes completed", "device")
	cadvisorFsBytesRead = cadvisorDesc("container_fs_reads_bytes_total",
		"Cumulative count of bytes read", "device")
	cadvisorFsBytesWritten = cadvisorDesc("container_fs_writes_bytes_total",
		"Cumulative count of bytes written", "device")

	stalledCPU = cadvisorDesc("container_pressure_cpu_stalled_seconds_total",
		"Total time duration no tasks in the container could make progress due to CPU congestion.")
	waitedCPU = cadvisorDesc("container_pressure_cpu_waiting_seconds_total",
		"Total time duration tasks in the container have waited due to CPU congestion.")
	stalledMemory = cadvisorDesc("container_pressure_memory_stalled_seconds_total",
		"Total time duration no tasks in the container could make progress due to memory congestion.")
	waitedMemory = cadvisorDesc("container_pressure_memory_waiting_seconds_total",
		"Total time duration tasks in the container have waited due to memory congestion.")
	stalledIO = cadvisorDesc("container_pressure_io_stalled_seconds_total",
		"Total time duration no tasks in the container could make progress due to IO congestion.")
	waitedIO = cadvisorDesc("container_pressure_io_waiting_seconds_total",
		"Total time duration tasks in the container have waited due to IO congestion.")

	received        = networkDesc("receive_bytes_total", "Cumulative count of bytes received")
	receivedPackets = networkDesc("receive_packets_total", "Cumulative count of packets received")
	receivedErrors  = networkDesc("receive_errors_total", "Cumulative count of errors encountered while receiving")
	receivedDropped = networkDesc("receive_packets_dropped_total",
		"Cumulative count of packets dropped while receiving")
	transmitted        = networkDesc("transmit_bytes_total", "Cumulative count of bytes transmitted")
	transmittedPackets = networkDesc("transmit_packets_total", "Cumulative count of packets transmitted")
	transmittedErrors  = networkDesc("transmit_errors_total",
		"Cumulative count of errors encountered while transmitting")
	transmittedDropped = networkDesc("transmit_packets_dropped_total",
		"Cumulative count of packets dropped while transmitting")

	cadvisorScrapeError = listed("container_scrape_error",
		"1 if there was an error while getting container metrics, 0 otherwise", nil)
)

func networkDesc(name, help string) *prometheus.Desc {
	return cadvisorDesc("container_network_"+name, help, "interface")
}

func seconds(nanos uint64) float64 { return float64(nanos) / float64(time.Second) }

// scrapeOf sends metrics to a scrape, each with the time at which it was read.
type scrapeOf struct{ ch chan<- prometheus.Metric }

func (s scrapeOf) gauge(d *prometheus.Desc, at time.Time, value float64, labels ...string) {
	s.tell(prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...), at)
}

func (s scrapeOf) counter(d *prometheus.Desc, at time.Time, value float64, labels ...string) {
	s.tell(prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...), at)
}

func (s scrapeOf) tell(m prometheus.Metric, at time.Time) {
	if !at.IsZero() {
		m = prometheus.NewMetricWithTimestamp(at, m)
	}
	s.ch <- m
}

// stalls reports for how long processes have waited, as far as the kernel does.
func (s scrapeOf) stalls(g group, at time.Time, all cgroup.Stalls) {
	for _, of := range []struct {
		waited, stalled *prometheus.Desc
		stall           *cgroup.Stall
	}{{waitedCPU, stalledCPU, all.CPU}, {waitedMemory, stalledMemory, all.Memory}, {waitedIO, stalledIO, all.IO}} {
		if of.stall != nil {
			s.counter(of.waited, at, float64(of.stall.Some.Total)/1e6, g.labels()...)
			s.counter(of.stalled, at, float64(of.stall.Full.Total)/1e6, g.labels()...)
		}
	}
}

// usage reports what a cgroup uses, as far as the kernel counts it: a running container has used some time and has
// some memory.
func (s scrapeOf) usage(g group, u sample) {
	if u.at.IsZero() {
		return
	}
	s.stalls(g, u.at, u.Stalls)
	labels := g.labels()
	if u.CPUNanos > 0 {
		s.counter(cadvisorCPU, u.at, seconds(u.CPUNanos), g.labels("total")...)
		s.counter(cadvisorCPUUser, u.at, seconds(u.CPUUserNanos), labels...)
		s.counter(cadvisorCPUSystem, u.at, seconds(u.CPUSystemNanos), labels...)
	}
	if u.Periods > 0 { // without a limit the kernel counts none
		s.counter(cadvisorPeriods, u.at, float64(u.Periods), labels...)
		s.counter(cadvisorThrottledPeriods, u.at, float64(u.ThrottledPeriods), labels...)
		s.counter(cadvisorThrottled, u.at, seconds(u.ThrottledNanos), labels...)
	}
	if u.Memory > 0 {
		for d, bytes := range map[*prometheus.Desc]uint64{cadvisorMemory: u.Memory, cadvisorWorkingSet: u.WorkingSet,
			cadvisorRSS: u.RSS, cadvisorCache: u.Cache, cadvisorMapped: u.Mapped, cadvisorSwap: u.Swap,
			cadvisorMaxMemory: u.MaxMemory} {
			s.gauge(d, u.at, float64(bytes), labels...)
		}
		s.counter(cadvisorFailCount, u.at, float64(u.MemoryFailures), labels...)
		s.counter(cadvisorFaults, u.at, float64(u.PageFaults), g.labels("pgfault", "hierarchy")...)
		s.counter(cadvisorFaults, u.at, float64(u.MajorFaults), g.labels("pgmajfault", "hierarchy")...)
	}
	if u.Pids > 0 {
		s.gauge(cadvisorThreads, u.at, float64(u.Pids), labels...)
	}
}

// spec reports the limits of a container: CPU weight and quota from its Pod, memory from the kernel.
func (s scrapeOf) spec(g group, u sample, limits *cri.LinuxContainerResources) {
	labels := g.labels()
	s.gauge(specPeriod, u.at, float64(limits.CpuPeriod), labels...)
	s.gauge(specShares, u.at, float64(limits.CpuShares), labels...)
	s.gauge(specMemory, u.at, float64(u.MemoryLimit), labels...)
	if limits.CpuQuota > 0 {
		s.gauge(specQuota, u.at, float64(limits.CpuQuota), labels...)
	}
}

func (s scrapeOf) network(g group, at time.Time, t *traffic) {
	labels := g.labels(t.name)
	for d, count := range map[*prometheus.Desc]uint64{received: t.rxBytes, receivedPackets: t.rxPackets,
		receivedErrors: t.rxErrors, receivedDropped: t.rxDropped, transmitted: t.txBytes,
		transmittedPackets: t.txPackets, transmittedErrors: t.txErrors, transmittedDropped: t.txDropped} {
		s.counter(d, at, float64(count), labels...)
	}
}
