package preempt

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Budgets are the PodDisruptionBudgets, and the disruptions that they do not know of yet.
type Budgets struct {
	byNamespace map[string][]*budget
	unseen      map[types.UID]*corev1.Pod
	version     uint64 // grows with every change
	coverage    uint64 // grows when other Pods may be protected than before
	round       uint64 // counts calls of split
}

// budget is one PodDisruptionBudget.
type budget struct {
	name      string
	spec      *metav1.LabelSelector
	selector  labels.Selector
	allowed   int
	disrupted map[string]metav1.Time
	left      int // of the current call of split
	round     uint64
}

// NewBudgets returns no budgets.
func NewBudgets() *Budgets {
	return &Budgets{byNamespace: map[string][]*budget{}, unseen: map[types.UID]*corev1.Pod{}}
}

// Set notes a budget that is new or changed. One whose selector cannot be read protects nothing.
func (b *Budgets) Set(pdb *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil {
		b.Remove(pdb)
		return
	}
	for _, o := range b.byNamespace[pdb.Namespace] {
		if o.name == pdb.Name && reflect.DeepEqual(o.spec, pdb.Spec.Selector) && len(o.disrupted) == 0 {
			b.version++
			o.allowed, o.disrupted = int(pdb.Status.DisruptionsAllowed), pdb.Status.DisruptedPods
			return
		}
	}
	b.Remove(pdb)
	b.byNamespace[pdb.Namespace] = append(b.byNamespace[pdb.Namespace], &budget{name: pdb.Name,
		spec: pdb.Spec.Selector, selector: selector,
		allowed: int(pdb.Status.DisruptionsAllowed), disrupted: pdb.Status.DisruptedPods})
}

// Remove notes that a budget is gone.
func (b *Budgets) Remove(pdb *policyv1.PodDisruptionBudget) {
	b.version++
	b.coverage++
	left := slices.DeleteFunc(b.byNamespace[pdb.Namespace], func(o *budget) bool { return o.name == pdb.Name })
	if b.byNamespace[pdb.Namespace] = left; len(left) == 0 {
		delete(b.byNamespace, pdb.Namespace)
	}
}

// Disrupt counts a Pod against its budgets until Seen: the API does not show yet that it goes.
func (b *Budgets) Disrupt(p *corev1.Pod) {
	if len(b.byNamespace[p.Namespace]) > 0 {
		b.version++
	}
	b.unseen[p.UID] = p
}

// Seen notes that the API shows that a Pod goes, or that it does not go after all.
func (b *Budgets) Seen(uid types.UID) {
	if p, ok := b.unseen[uid]; ok {
		if len(b.byNamespace[p.Namespace]) > 0 {
			b.version++
		}
		delete(b.unseen, uid)
	}
}

// protects reports whether a budget selects the Pod and does not count it as disrupted already.
func (o *budget) protects(p *corev1.Pod) bool {
	if _, disrupted := o.disrupted[p.Name]; disrupted {
		return false
	}
	return o.selector.Matches(labels.Set(p.Labels))
}

// begin starts a count of the disruptions of one node.
func (b *Budgets) begin() { b.round++ }

// violates counts one more disruption since begin, and reports whether it violates a budget and whether any budget
// protects the Pod at all.
func (b *Budgets) violates(p *corev1.Pod) (violated, protected bool) {
	for _, o := range b.byNamespace[p.Namespace] {
		if !o.protects(p) {
			continue
		}
		protected = true
		if o.round != b.round {
			o.round, o.left = b.round, o.allowed-b.unseenOf(o, p.Namespace)
		}
		o.left--
		violated = violated || o.left < 0
	}
	return violated, protected
}

// unseenOf returns how many Pods of a budget go without its knowledge.
func (b *Budgets) unseenOf(o *budget, namespace string) int {
	n := 0
	for _, p := range b.unseen {
		if p.Namespace == namespace && o.protects(p) {
			n++
		}
	}
	return n
}
