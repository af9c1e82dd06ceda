package simulate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/runtimeclass"
)

// admit fills in what the apiserver would, as far as it decides where the Pod goes. LimitRanges, quotas and webhooks
// are not asked.
func (m *mesh) admit(p *corev1.Pod) error {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	for _, containers := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			defaultRequests(&c.Resources)
			for j := range c.Ports {
				if c.Ports[j].Protocol == "" {
					c.Ports[j].Protocol = corev1.ProtocolTCP
				}
				if p.Spec.HostNetwork && c.Ports[j].HostPort == 0 {
					c.Ports[j].HostPort = c.Ports[j].ContainerPort
				}
			}
		}
	}
	if p.Spec.Resources != nil {
		defaultRequests(p.Spec.Resources)
	}
	return m.rank(p)
}

// defaultRequests makes the request of each resource that has only a limit that limit.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}

// runBy gives a Pod that is made what its RuntimeClass says. A Pod that is there has it.
func (m *mesh) runBy(p *corev1.Pod) error {
	var class *nodev1.RuntimeClass
	if name := p.Spec.RuntimeClassName; name != nil && *name != "" {
		at := slices.IndexFunc(m.runtimes, func(c *nodev1.RuntimeClass) bool { return c.Name == *name })
		if at < 0 {
			return fmt.Errorf("runtimeClassName: %w", runtimeclass.Missing(*name))
		}
		class = m.runtimes[at]
	}
	err := runtimeclass.Apply(p, class)
	if err == nil {
		err = runtimeclass.Check(p, class)
	}
	if err != nil {
		return fmt.Errorf("runtimeClassName: %w", err)
	}
	return nil
}

// rank gives the Pod the priority of its class.
func (m *mesh) rank(p *corev1.Pod) error {
	if p.Spec.Priority != nil {
		return nil
	}
	class, err := m.priorityClass(p.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	p.Spec.Priority = &class.Value
	if p.Spec.PreemptionPolicy == nil {
		p.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
	return nil
}

// rankGroups gives each PodGroup the priority of its class.
func (m *mesh) rankGroups() error {
	for _, o := range m.others {
		g, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok || g.Spec.Priority != nil {
			continue
		}
		class, err := m.priorityClass(g.Spec.PriorityClassName)
		if err != nil {
			return fmt.Errorf("PodGroup %s/%s: %w", g.Namespace, g.Name, err)
		}
		g.Spec.Priority = &class.Value
	}
	return nil
}

// priorityClass returns a copy of the class of the name, of the default one without a name.
func (m *mesh) priorityClass(name string) (schedulingv1.PriorityClass, error) {
	for _, class := range m.priorities {
		if class.Name == name || name == "" && class.GlobalDefault {
			return *class, nil
		}
	}
	if name != "" {
		return schedulingv1.PriorityClass{}, fmt.Errorf(
			"priorityClassName: there is no PriorityClass %q, neither on the mesh nor in the manifests", name)
	}
	return schedulingv1.PriorityClass{}, nil
}

// ephemeral returns the claims that are made for the Pod alone.
func ephemeral(p *corev1.Pod) (claims []*corev1.PersistentVolumeClaim) {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		c := &corev1.PersistentVolumeClaim{Spec: *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
		c.Namespace, c.Name = p.Namespace, podview.ClaimName(p, v)
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID,
			Controller: new(true)}}
		claims = append(claims, c)
	}
	return claims
}

// claim takes in a claim that is new; one of its name that there is already stays.
func (m *mesh) claim(c *corev1.PersistentVolumeClaim) {
	name := namespaced(c)
	if m.claims[name] != nil {
		return
	}
	c.UID, c.Status = uid("PersistentVolumeClaim", c.Namespace, c.Name), corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimPending}
	if c.Spec.StorageClassName == nil {
		c.Spec.StorageClassName = m.defaultClass()
	}
	m.claims[name] = c
}

// defaultClass returns the name of the class of claims that name none; nil where no class is the default.
func (m *mesh) defaultClass() *string {
	class, found := defaultclass.Among(m.classes, defaultclass.Storage)
	if !found {
		return nil
	}
	return &class.Name
}
