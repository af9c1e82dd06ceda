package horizontalpodautoscaler

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// Sample is what a Pod used over a window that ended at a time.
type Sample struct {
	Amount float64
	At     time.Time
	Window time.Duration
}

// grouped are the Pods of a target, grouped by what is known of their usage. Pods that are ending count nowhere.
type grouped struct {
	// counted is the number of Pods whose samples reflect normal operation.
	counted int
	// samples are theirs, by name.
	samples map[string]float64
	// unready Pods do not have meaningful samples yet; missing Pods have no samples.
	unready, missing []string
}

// group groups the Pods by their samples of a resource; "" stands for a metric whose samples are meaningful during
// startup too.
func (d *decision) group(name corev1.ResourceName, samples map[string]Sample) grouped {
	g := grouped{samples: map[string]float64{}}
	for _, pod := range d.Pods {
		sample, known := samples[pod.Name]
		switch {
		case !podview.IsActive(pod):
		case pod.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, pod.Name)
		case !known:
			g.missing = append(g.missing, pod.Name)
		case name == corev1.ResourceCPU && d.starts(pod, sample):
			g.unready = append(g.unready, pod.Name)
		default:
			g.counted++
			g.samples[pod.Name] = sample.Amount
		}
	}
	return g
}

// starts reports whether a Pod's CPU sample still reflects its startup.
func (d *decision) starts(pod *corev1.Pod, sample Sample) bool {
	ready := podview.Condition(pod, corev1.PodReady)
	if ready == nil || pod.Status.StartTime == nil {
		return true
	}
	since, started := ready.LastTransitionTime.Time, pod.Status.StartTime.Time
	if started.Add(d.Settings.CPUInitialization).After(d.Now) {
		// The Pod must have been ready throughout the window of the sample.
		return ready.Status == corev1.ConditionFalse || sample.At.Before(since.Add(sample.Window))
	}
	// Later, only a Pod that has never been ready counts as starting.
	return ready.Status == corev1.ConditionFalse && started.Add(d.Settings.InitialReadinessDelay).After(since)
}

// fit returns how many replicas bring the ratio of usage to target to one.
func (d *decision) fit(g grouped, ratioOf func(map[string]float64) float64, high func(pod string) float64) int32 {
	ratio := ratioOf(g.samples)
	samples := g.assumed(ratio, high)
	if len(samples) == len(g.samples) {
		if d.tolerated(ratio) {
			return d.replicas()
		}
		return clamp(math.Ceil(ratio * float64(g.counted)))
	}
	damped := ratioOf(samples)
	if d.tolerated(damped) || ratio < 1 && damped > 1 || ratio > 1 && damped < 1 {
		return d.replicas()
	}
	replicas := clamp(math.Ceil(damped * float64(len(samples))))
	if damped < 1 && replicas > d.replicas() || damped > 1 && replicas < d.replicas() {
		return d.replicas()
	}
	return replicas
}

// assumed returns the samples plus assumptions for unknown Pods that change the replicas least: zero if usage is
// above the target, and the result of high if it is below. Starting Pods are included only if it is above.
func (g grouped) assumed(ratio float64, high func(pod string) float64) map[string]float64 {
	samples := maps.Clone(g.samples)
	switch {
	case ratio < 1:
		for _, pod := range g.missing {
			samples[pod] = high(pod)
		}
	case ratio > 1:
		for _, pod := range slices.Concat(g.missing, g.unready) {
			samples[pod] = 0
		}
	}
	return samples
}

func (g grouped) average() float64 { return average(g.samples) }

func average(samples map[string]float64) float64 {
	var sum float64
	for _, sample := range samples {
		sum += sample
	}
	return sum / float64(len(samples))
}

// requestOf returns a resource request of a Pod, or of one container. It reads the containers as the cache keeps
// them (podfeed.Trim): for Pods with requests, the containers that run as long as the Pod, preceded by an unnamed
// container with the Pod-level request.
func requestOf(pod *corev1.Pod, name corev1.ResourceName, container string) (float64, error) {
	if len(pod.Spec.InitContainers) == 0 {
		return 0, fmt.Errorf("missing request for %s in all containers of Pod %s", name, pod.Name)
	}
	var sum float64
	found := container == ""
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		request, ok := c.Resources.Requests[name]
		switch {
		case c.Name == "" && container == "" && ok:
			return amountOf(&request), nil
		case c.Name == "" || container != "" && c.Name != container:
			continue
		case !ok:
			return 0, fmt.Errorf("missing request for %s in container %s of Pod %s", name, c.Name, pod.Name)
		}
		sum += amountOf(&request)
		found = true
	}
	if !found {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
	}
	return sum, nil
}
