package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultClass is the annotation of the StorageClass of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

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
	for _, v := range p.Spec.Volumes {
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		c := &corev1.PersistentVolumeClaim{Spec: *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
		c.Namespace, c.Name = p.Namespace, p.Name+"-"+v.Name
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

func (m *mesh) defaultClass() *string {
	var newest *storagev1.StorageClass
	for _, class := range m.classes {
		if class.Annotations[defaultClass] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	if newest == nil {
		return nil
	}
	return &newest.Name
}
