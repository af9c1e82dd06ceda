package stats

import (
	"errors"
	"io/fs"
	"time"

	"keelson.dev/services/nodeagent/internal/cgroup"
)

// stands is how long a reading is reused.
const stands = time.Second

// reading is what the node, its Pods and their containers used when it was taken. It is not changed afterwards.
type reading struct {
	host   host
	hostAt time.Time
	// cores is the CPU usage of the machine, in billionths of a core.
	cores *uint64
	// all is what all Pods use together.
	all  sample
	pods []podReading
	// faults are the errors of missing figures that should exist.
	faults []error
}

// sample holds the figures of one cgroup; at is zero if it does not exist.
type sample struct {
	at    time.Time
	cores *uint64
	cgroup.Usage
}

// podReading holds the figures of a Pod and those of its running containers, one instance of each.
type podReading struct {
	Pod
	usage      sample
	containers []containerReading
}

type containerReading struct {
	name, id, image string
	startedAt       time.Time
	usage           sample
}

// read returns the figures of the node and of all its Pods, which may be a moment old. A Pod or container without a
// cgroup, before or after its life, has none.
func (c *Collector) read() (*reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && time.Since(c.last.hostAt) < stands {
		return c.last, nil
	}
	host, err := readHost(c.config.Proc)
	if err != nil {
		return nil, err
	}
	r := &reader{Collector: c, reading: &reading{host: host, hostAt: time.Now()}, subjects: map[string]bool{}}
	r.node()
	for _, pod := range c.config.Pods() {
		r.pod(pod)
	}
	c.rates.forget(r.hostAt)
	c.totals.keep(r.subjects)
	c.last, c.networks = r.reading, nil
	return r.reading, nil
}

// Subjects other than Pods and containers, whose subjects are their IDs.
const (
	nodeSubject = ""
	podsSubject = "pods"
)

// reader takes a reading.
type reader struct {
	*Collector
	*reading
	subjects map[string]bool
}

func (r *reader) node() {
	r.subjects[nodeSubject] = true
	r.host.cpuNanos = r.totals.grow(nodeSubject, "cpu", r.host.cpuNanos)
	r.cores = r.rates.cores(nodeSubject, r.host.cpuNanos, r.hostAt)
	usage, err := r.config.Usage.NodeUsage()
	r.all = r.sample(podsSubject, usage, err)
}

func (r *reader) pod(pod Pod) {
	usage, err := r.config.Usage.PodUsage(pod.Pod)
	p := podReading{Pod: pod, usage: r.sample(string(pod.UID), usage, err)}
	seen := map[string]bool{}
	for i := range pod.Running { // the newest instance of each name comes first
		instance := &pod.Running[i]
		usage, err := r.config.Usage.ContainerUsage(pod.Pod, instance.ID)
		s := r.sample(instance.ID, usage, err)
		if s.at.IsZero() || seen[instance.Name] {
			continue
		}
		seen[instance.Name] = true
		p.containers = append(p.containers, containerReading{instance.Name, instance.ID, instance.Image,
			instance.StartedAt, s})
	}
	r.pods = append(r.pods, p)
}

// sample records when figures were read: rates are computed from the time between two.
func (r *reader) sample(subject string, usage cgroup.Usage, err error) sample {
	r.subjects[subject] = true
	if err != nil {
		if err := ignoreGone(err); err != nil {
			r.faults = append(r.faults, err)
		}
		return sample{}
	}
	s := sample{at: time.Now(), Usage: r.totals.usage(subject, usage)}
	s.cores = r.rates.cores(subject, s.CPUNanos, s.at)
	return s
}

// ignoreGone ignores the error about a cgroup that does not exist yet, or no longer.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
