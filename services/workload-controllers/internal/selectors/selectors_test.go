package selectors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func anySelector(r *rand.Rand) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range []string{"a", "b"} {
		if r.IntN(2) == 0 {
			selector.MatchLabels[key] = fmt.Sprint(r.IntN(3))
		}
	}
	if r.IntN(3) == 0 {
		operators := []metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, metav1.LabelSelectorOpIn,
			metav1.LabelSelectorOpNotIn, "Wrong",
		}
		requirement := metav1.LabelSelectorRequirement{Key: "c", Operator: operators[r.IntN(len(operators))]}
		if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpNotIn {
			requirement.Values = []string{"0", "1"}
		}
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{requirement}
	}
	if r.IntN(10) == 0 {
		return nil
	}
	return selector
}

// The index finds what reading every selector finds, whatever changed before.
func TestTheIndexAgreesWithReadingAll(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		x, there := New(), map[string]*appsv1.ReplicaSet{}
		for step := range 100 {
			namespace, name := fmt.Sprint("ns", r.IntN(2)), fmt.Sprint(r.IntN(6))
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
				Generation: int64(step + 1)}}
			if r.IntN(4) == 0 {
				x.Remove(set)
				delete(there, namespace+"/"+name)
			} else {
				set.Spec.Selector = anySelector(r)
				x.Put(set, set.Spec.Selector)
				there[namespace+"/"+name] = set
			}
			asked := labels.Set{"a": fmt.Sprint(r.IntN(3)), "c": fmt.Sprint(r.IntN(3))}
			if r.IntN(2) == 0 {
				asked["b"] = fmt.Sprint(r.IntN(3))
			}
			var want []string
			for _, set := range there {
				selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
				if err == nil && set.Namespace == "ns0" && selector.Matches(asked) {
					want = append(want, set.Name)
				}
			}
			slices.Sort(want)
			if got := x.Matching("ns0", asked); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %v match %v, want %v", seed, step, got, asked, want)
			}
		}
		for _, set := range there {
			x.Remove(set)
		}
		if len(x.entries)+len(x.buckets) != 0 {
			t.Fatalf("seed %d: something is kept of nothing", seed)
		}
	}
}

// A change of the status alone costs nothing: the selector of a generation is read once.
func TestAGenerationIsReadOnce(t *testing.T) {
	x := New()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 1}}
	x.Put(set, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	x.Put(set, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}})
	if got := x.Matching("ns", labels.Set{"app": "web"}); !slices.Equal(got, []string{"web"}) {
		t.Errorf("%v match", got)
	}
	// Another object of the same name, whose predecessor's deletion was not seen.
	set = set.DeepCopy()
	set.UID = "another"
	x.Put(set, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}})
	if got := x.Matching("ns", labels.Set{"app": "web"}); len(got) != 0 {
		t.Errorf("%v match, whose selector is another", got)
	}
}

// Services count no generations: what has changed of one is its selector or nothing that matters here.
func TestWithoutGenerations(t *testing.T) {
	index := New()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	web := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	first, changed := index.Put(service, web())
	if !changed || !first.Matches(labels.Set{"app": "web"}) {
		t.Errorf("the first selector: %v, changed %t", first, changed)
	}
	if again, changed := index.Put(service, web()); changed || again.String() != first.String() {
		t.Errorf("the same selector: %v, changed %t", again, changed)
	}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	if read, changed := index.Put(service, other); !changed || !read.Matches(labels.Set{"app": "other"}) {
		t.Errorf("another selector: %v, changed %t", read, changed)
	}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Wrong"}}}
	if read, changed := index.Put(service, wrong); !changed || !read.Empty() && read.Matches(labels.Set{"a": "b"}) {
		t.Errorf("one that cannot be read: %v, changed %t", read, changed)
	}
	if got := index.Matching("ns", labels.Set{"app": "other"}); len(got) != 0 {
		t.Errorf("%v match by a selector that cannot be read", got)
	}
}

// A change of an object that is not known takes nothing away.
func TestRemovingAnUnknownObject(t *testing.T) {
	index := New()
	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 1}}
	index.Put(web, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	for _, other := range []metav1.ObjectMeta{{Namespace: "other", Name: "web"}, {Namespace: "ns", Name: "other"}} {
		index.Remove(&other)
	}
	if got := index.Matching("ns", labels.Set{"app": "web"}); !slices.Equal(got, []string{"web"}) {
		t.Errorf("%v match", got)
	}
}
