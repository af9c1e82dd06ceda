package stats

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// CAdvisor serves the figures under cadvisor's metric names and labels. Nothing is read without a scrape.
func (c *Collector) CAdvisor() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(cadvisor{c, newDevices(c.config.Sys)})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// cadvisor is a Collector as a prometheus.Collector: each scrape is a reading.
type cadvisor struct {
	*Collector
	devices *devices
}

// group holds the labels of all metrics of a cgroup.
type group struct{ container, id, image, name, namespace, pod string }

func (g group) labels(more ...string) []string {
	return append([]string{g.container, g.id, g.image, g.name, g.namespace, g.pod}, more...)
}

// Describe implements prometheus.Collector.
func (c cadvisor) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range cadvisorDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Before the first survey of the disk, what containers have written is
// missing.
func (c cadvisor) Collect(ch chan<- prometheus.Metric) {
	s := scrapeOf{ch}
	r, err := c.read()
	if err != nil {
		s.gauge(cadvisorScrapeError, time.Time{}, 1)
		return
	}
	c.machine(s, r)
	disk, networks := c.config.DiskKnown(), c.networksOf(r)
	failed := len(r.faults) > 0
	for i := range r.pods {
		p := &r.pods[i]
		if p.Name == "" { // a Pod that only the runtime knows
			continue
		}
		c.pod(s, p, networks)
		for j := range p.containers {
			if err := c.container(s, p, &p.containers[j], disk); err != nil {
				failed = true
			}
		}
	}
	value := 0.0
	if failed {
		value = 1
	}
	s.gauge(cadvisorScrapeError, time.Time{}, value)
}

// machine reports the figures of the machine, and what everything on it uses.
func (c cadvisor) machine(s scrapeOf, r *reading) {
	is := c.config.Machine
	labels := []string{is.BootID, is.MachineID, is.SystemUUID}
	s.gauge(machineCores, time.Time{}, float64(c.config.MilliCPU)/1000, labels...)
	s.gauge(machineMemory, time.Time{}, float64(r.host.memoryTotal), labels...)
	s.gauge(machineSwap, time.Time{}, float64(r.host.swapTotal), labels...)
	root := group{id: "/"}
	s.counter(cadvisorCPU, r.hostAt, seconds(r.host.cpuNanos), root.labels("total")...)
	s.gauge(cadvisorMemory, r.hostAt, float64(r.host.memoryTotal-r.host.memoryFree), root.labels()...)
	s.gauge(cadvisorWorkingSet, r.hostAt, float64(r.host.workingSet()), root.labels()...)
	s.stalls(root, r.hostAt, r.host.stalls)
	s.usage(group{id: c.config.Usage.Path(nil, "")}, r.all)
}

func (c cadvisor) pod(s scrapeOf, p *podReading, networks *networks) {
	of := group{id: c.config.Usage.Path(p.Pod.Pod, ""), namespace: p.Namespace, pod: p.Name}
	s.usage(of, p.usage)
	network := networks.pods[p.UID]
	if network.at.IsZero() {
		return
	}
	sandbox := sandboxOf(&p.Pod)
	of.id, of.name = c.config.Usage.Path(p.Pod.Pod, sandbox), sandbox
	for i := range network.interfaces {
		s.network(of, network.at, &network.interfaces[i])
	}
}

// container returns an error if a figure of the container that should exist is missing.
func (c cadvisor) container(s scrapeOf, p *podReading, of *containerReading, disk *diskusage.Found) error {
	g := group{container: of.name, id: c.config.Usage.Path(p.Pod.Pod, of.id), image: of.image, name: of.id,
		namespace: p.Namespace, pod: p.Name}
	s.usage(g, of.usage)
	at := of.usage.at
	s.gauge(cadvisorSeen, time.Time{}, float64(at.Unix()), g.labels()...)
	if !of.startedAt.IsZero() {
		s.gauge(cadvisorStart, at, float64(of.startedAt.Unix()), g.labels()...)
	}
	for _, e := range lifecycle.Entries(p.Pod.Pod) {
		if e.Spec.Name == of.name {
			own := containerconfig.CPUs{Exclusive: c.config.OwnCPUs != nil && c.config.OwnCPUs(p.UID, of.name)}
			s.spec(g, of.usage, own.Of(containerconfig.Resized(p.Pod.Pod, e.Spec, containerconfig.Node{})))
		}
	}
	if disk != nil && disk.Images != nil {
		if layer, known := disk.Pods[p.UID].Layers[of.name]; known {
			device := c.devices.of(disk.Images.Dir)
			s.gauge(cadvisorFsUsage, disk.At, float64(layer.Bytes), g.labels(device)...)
			s.gauge(cadvisorFsLimit, disk.At, float64(disk.Images.Space.Bytes), g.labels(device)...)
		}
	}
	transfers, err := c.config.Usage.ContainerTransfers(p.Pod.Pod, of.id)
	for _, t := range transfers {
		device := g.labels(c.devices.name(t.Major, t.Minor))
		s.counter(cadvisorFsReads, at, float64(t.Reads), device...)
		s.counter(cadvisorFsWrites, at, float64(t.Writes), device...)
		s.counter(cadvisorFsBytesRead, at, float64(t.BytesRead), device...)
		s.counter(cadvisorFsBytesWritten, at, float64(t.BytesWritten), device...)
	}
	return ignoreGone(err)
}
