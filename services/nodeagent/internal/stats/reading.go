package stats

import (
	"errors"
	"io/fs"
	"time"

	"keelson.dev/services/nodeagent/internal/cgroup"
)

// reading is what the node, its Pods and their containers used when it was taken.
type reading struct {
	host   host
	hostAt time.Time
	// all is what all Pods use together.
	all  sample
	pods []podReading
	// faults are why figures are missing that should be there.
	faults []error
}

// sample are the figures of one cgroup; At is zero if there is none.
type sample struct {
	at time.Time
	cgroup.Usage
}

// podReading are the figures of a Pod and those of its running containers, one instance of each.
type podReading struct {
	Pod
	usage      sample
	containers []containerReading
}

type containerReading struct {
	name, id  string
	startedAt time.Time
	usage     sample
}

// read reads the figures of the node and of all its Pods. A Pod or a container whose cgroup is not there yet, or no
// longer, has none.
func (c *Collector) read() (*reading, error) {
	host, err := readHost("/proc")
	if err != nil {
		return nil, err
	}
	r := &reading{host: host, hostAt: time.Now()}
	r.all = r.sample(c.config.Usage.NodeUsage())
	for _, pod := range c.config.Pods() {
		p := podReading{Pod: pod, usage: r.sample(c.config.Usage.PodUsage(pod.Pod))}
		seen := map[string]bool{}
		for i := range pod.Running { // the newest instance of each name comes first
			instance := &pod.Running[i]
			usage := r.sample(c.config.Usage.ContainerUsage(pod.Pod, instance.ID))
			if usage.at.IsZero() || seen[instance.Name] {
				continue
			}
			seen[instance.Name] = true
			p.containers = append(p.containers, containerReading{instance.Name, instance.ID, instance.StartedAt, usage})
		}
		r.pods = append(r.pods, p)
	}
	return r, nil
}

// sample notes when figures were read: rates are made of the time between two.
func (r *reading) sample(usage cgroup.Usage, err error) sample {
	if err == nil {
		return sample{time.Now(), usage}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		r.faults = append(r.faults, err)
	}
	return sample{}
}
