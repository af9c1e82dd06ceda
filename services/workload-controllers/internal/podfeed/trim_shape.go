package podfeed

import (
	"encoding/binary"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/kit/fieldmask"
	"keelson.dev/kit/podview"
)

// shape is what is kept of a Pod's containers: the Pods of one template share it.
type shape struct {
	amounts         *corev1.ResourceRequirements
	requests, ports []corev1.Container
}

// mostShapes bounds how many shapes are remembered.
const mostShapes = 10_000

// allShapes are those of all Pods, by what they follow from.
var allShapes = fieldmask.NewPool[*shape](mostShapes)

// shapeOf works the shape out only for the first Pod of its kind: there is an event of each Pod for each of its
// states.
func shapeOf(pod *corev1.Pod) *shape {
	spelling.mu.Lock()
	defer spelling.mu.Unlock()
	spelling.pod(pod)
	return allShapes.Share(spelling.text, func() *shape {
		return &shape{amounts: amounts(pod), requests: requests(pod), ports: namedPorts(&pod.Spec)}
	})
}

// spelling is used for one Pod after the other, so that spelling allocates nothing.
var spelling speller

// speller writes down what a Pod's shape follows from, so that Pods of different shapes have different texts. Each
// part says how long it is.
type speller struct {
	mu     sync.Mutex // guards what follows
	text   []byte
	digits []byte
	names  []corev1.ResourceName
	amount resource.Quantity // a variable would escape into the heap for each amount
}

func (s *speller) pod(pod *corev1.Pod) {
	s.text = s.text[:0]
	s.containers(pod.Spec.Containers)
	s.containers(pod.Spec.InitContainers)
	s.list(pod.Spec.Overhead)
	s.requirements(pod.Spec.Resources)
	if !slices.ContainsFunc(pod.Status.ContainerStatuses, tellsResources) &&
		!slices.ContainsFunc(pod.Status.InitContainerStatuses, tellsResources) {
		s.flag(false)
	} else {
		s.flag(true)
		s.statuses(pod.Status.ContainerStatuses)
		s.statuses(pod.Status.InitContainerStatuses)
	}
	s.flag(resourcehelper.IsPodResizeInfeasible(pod))
}

func (s *speller) containers(containers []corev1.Container) {
	s.number(len(containers))
	for i := range containers {
		c := &containers[i]
		s.string(c.Name)
		s.flag(podview.IsSidecar(c))
		s.requirements(&c.Resources)
		s.number(len(c.Ports))
		for j := range c.Ports {
			s.string(c.Ports[j].Name)
			s.string(string(c.Ports[j].Protocol))
			s.number(int(c.Ports[j].ContainerPort))
		}
	}
}

// tellsResources reports whether a container's amounts are those that its node reports.
func tellsResources(status corev1.ContainerStatus) bool {
	return status.Resources != nil || status.AllocatedResources != nil
}

func (s *speller) statuses(statuses []corev1.ContainerStatus) {
	s.number(len(statuses))
	for i := range statuses {
		s.string(statuses[i].Name)
		s.requirements(statuses[i].Resources)
		s.list(statuses[i].AllocatedResources)
	}
}

func (s *speller) requirements(asked *corev1.ResourceRequirements) {
	s.flag(asked != nil)
	if asked != nil {
		s.list(asked.Requests)
		s.list(asked.Limits)
	}
}

func (s *speller) list(amounts corev1.ResourceList) {
	s.flag(amounts != nil)
	s.number(len(amounts))
	s.names = s.names[:0]
	for name := range amounts {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		s.amount = amounts[name]
		s.string(string(name))
		s.quantity()
	}
}

// quantity spells the amount at hand.
func (s *speller) quantity() {
	s.string(string(s.amount.Format))
	whole, ok := s.amount.AsInt64()
	s.flag(ok)
	if ok {
		s.text = binary.AppendVarint(s.text, whole)
		return
	}
	digits, suffix := s.amount.CanonicalizeBytes(s.digits[:0])
	s.bytes(digits)
	s.bytes(suffix)
	s.digits = digits
}

func (s *speller) string(text string) {
	s.number(len(text))
	s.text = append(s.text, text...)
}

func (s *speller) bytes(text []byte) {
	s.number(len(text))
	s.text = append(s.text, text...)
}

func (s *speller) number(n int) { s.text = binary.AppendVarint(s.text, int64(n)) }

func (s *speller) flag(set bool) {
	if set {
		s.text = append(s.text, 1)
	} else {
		s.text = append(s.text, 0)
	}
}
