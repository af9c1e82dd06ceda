package priority

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
)

// defaultPriority is that of Pods that name no class, where no class is the default.
const defaultPriority = int32(0)

// resolved is what a Pod gets from its class.
type resolved struct {
	className string
	priority  int32
	policy    corev1.PreemptionPolicy
}

// resolve returns what a Pod of the class gets; without a class it is what every Pod gets.
func resolve(class *schedulingv1.PriorityClass) resolved {
	if class == nil {
		return resolved{priority: defaultPriority, policy: corev1.PreemptLowerPriority}
	}
	return resolved{class.Name, class.Value, ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority)}
}

// pickDefault returns the class of Pods that name none. There should be one at most; if a race left several, it is the
// one with the lowest value, so that the race raises no Pod's priority.
func pickDefault(classes []*schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	var chosen *schedulingv1.PriorityClass
	for _, class := range classes {
		if !class.GlobalDefault {
			continue
		}
		if chosen == nil || class.Value < chosen.Value || class.Value == chosen.Value && class.Name < chosen.Name {
			chosen = class
		}
	}
	return chosen
}

// apply writes r into the Pod. What the client has set itself must be the same.
func apply(pod *corev1.Pod, r resolved) error {
	if asked := pod.Spec.Priority; asked != nil && *asked != r.priority {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission "+
			"controller computed %d from the given PriorityClass name", *asked, r.priority)
	}
	if asked := pod.Spec.PreemptionPolicy; asked != nil && *asked != r.policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority "+
			"admission controller computed %s from the given PriorityClass name", *asked, r.policy)
	}
	pod.Spec.PriorityClassName = r.className
	pod.Spec.Priority = ptr.To(r.priority)
	pod.Spec.PreemptionPolicy = ptr.To(r.policy)
	return nil
}

// applyToGroup writes r into the PodGroup. What the client has set itself must be the same.
func applyToGroup(group *schedulingv1beta1.PodGroup, r resolved) error {
	if asked := group.Spec.Priority; asked != nil && *asked != r.priority {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod group spec; priority "+
			"admission controller computed %d from the given PriorityClass name", *asked, r.priority)
	}
	group.Spec.PriorityClassName = r.className
	group.Spec.Priority = ptr.To(r.priority)
	return nil
}

// keepOfGroup takes over from the stored PodGroup what a client that replaces it leaves out.
func keepOfGroup(group, old *schedulingv1beta1.PodGroup) {
	if group.Spec.Priority == nil {
		group.Spec.Priority = old.Spec.Priority
	}
	if group.Spec.PriorityClassName == "" {
		group.Spec.PriorityClassName = old.Spec.PriorityClassName
	}
}

// keep takes over from the stored Pod what a client that replaces it leaves out.
func keep(pod, old *corev1.Pod) {
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = old.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
}

// checkDefault refuses a second default class.
func checkDefault(class *schedulingv1.PriorityClass, all []*schedulingv1.PriorityClass) error {
	if !class.GlobalDefault {
		return nil
	}
	if current := pickDefault(all); current != nil && current.Name != class.Name {
		return fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", current.Name)
	}
	return nil
}
