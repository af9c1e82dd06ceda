package feed

import (
	"cmp"
	"fmt"
	"math/rand" //nolint:depguard // the library's fuzzer takes a source of this package
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

// anyOf fills a field with one of the values, the first of them more often.
func anyOf[T any](values ...T) func(*T, randfill.Continue) {
	return func(field *T, c randfill.Continue) { *field = values[max(0, c.Intn(len(values)+2)-2)] }
}

// newFiller fills whole objects, whatever the API has, with few different values, so that they meet.
func newFiller(seed int64) *randfill.Filler {
	return randfill.New().RandSource(rand.NewSource(seed)).NilChance(.6).NumElements(0, 2).Funcs(
		anyOf("a", "b", "zone", corev1.PodReasonInfeasible),
		func(i *int32, c randfill.Continue) { *i = int32(c.Intn(3)) },
		func(i *int64, c randfill.Continue) { *i = int64(c.Intn(3)) },
		func(r *corev1.ResourceList, c randfill.Continue) {
			*r = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(1+c.Intn(10))*100,
				resource.DecimalSI)}
			if c.Intn(3) == 0 {
				(*r)["example.com/gpu"] = *resource.NewQuantity(int64(c.Intn(2)), resource.DecimalSI)
			}
		},
		anyOf(corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		anyOf(corev1.TolerationOpExists, corev1.TolerationOpEqual, ""),
		anyOf(corev1.NodeSelectorOpExists, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
			corev1.NodeSelectorOpDoesNotExist),
		anyOf(corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded),
		anyOf(corev1.ProtocolTCP, corev1.ProtocolUDP),
		func(p *corev1.ContainerPort, c randfill.Continue) {
			c.FillNoCustom(p)
			p.HostIP = ""
		},
		anyOf(corev1.ContainerRestartPolicyAlways, ""),
		anyOf(corev1.PodResizePending, corev1.PodScheduled),
		func(t **metav1.Time, _ randfill.Continue) { *t = nil },
		func(m *metav1.ManagedFieldsEntry, _ randfill.Continue) { m.Manager = "m" },
		func(*runtime.TypeMeta, randfill.Continue) {},
	)
}

// history is the input of one scheduler and its decisions.
type history struct {
	cycle           *cycle.Cycle
	verdicts        []string
	placed, refused int
}

func newHistory(seed uint64, now time.Time) *history {
	settings := config.Default()
	h := &history{cycle: cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})}
	h.cycle.Lead(corev1.DefaultSchedulerName, true, now)
	return h
}

// decide takes down all that is decided now.
func (h *history) decide(now time.Time) {
	for v, ok := h.cycle.Next(now); ok; v, ok = h.cycle.Next(now) {
		if v.Node != "" {
			h.placed++
		} else {
			h.refused++
		}
		h.verdicts = append(h.verdicts, fmt.Sprintf("%s on %q of %d, score %d: %s", v.Pod.UID, v.Node, v.Feasible,
			v.Score, v.Message()))
	}
}

// A scheduler that sees trimmed objects decides what one decides that sees them whole, in any history.
func TestTrimmingChangesNoDecision(t *testing.T) {
	placed, refused := 0, 0
	for seed := range int64(60) {
		fill, r, now := newFiller(seed), rand.New(rand.NewSource(seed)), time.Unix(1_800_000_000, 0)
		whole, trimmed := newHistory(uint64(seed), now), newHistory(uint64(seed), now)
		for range 60 {
			now = now.Add(time.Second)
			if r.Intn(4) == 0 {
				n := randomNode(fill, fmt.Sprintf("n%d", r.Intn(4)), r)
				cut, err := trimNode(n.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				whole.cycle.SetNode(n)
				trimmed.cycle.SetNode(cut.(*corev1.Node))
			} else {
				p := randomPod(fill, fmt.Sprintf("p%d", r.Intn(20)), r)
				cut, err := trimPod(p.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				whole.cycle.SetPod(p, now)
				trimmed.cycle.SetPod(cut.(*corev1.Pod), now)
			}
			whole.decide(now)
			trimmed.decide(now)
			if !slices.Equal(whole.verdicts, trimmed.verdicts) {
				t.Fatalf("seed %d: whole %q, trimmed %q", seed, whole.verdicts, trimmed.verdicts)
			}
			whole.verdicts, trimmed.verdicts = nil, nil
		}
		placed, refused = placed+whole.placed, refused+whole.refused
	}
	if placed < 200 || refused < 200 {
		t.Errorf("%d Pods placed and %d refused show little", placed, refused)
	}
}

func randomNode(fill *randfill.Filler, name string, r *rand.Rand) *corev1.Node {
	n := &corev1.Node{}
	fill.Fill(n)
	n.Name = name
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelHostname] = name
	n.Spec.Unschedulable, n.Spec.Taints = n.Spec.Unschedulable && r.Intn(2) == 0,
		n.Spec.Taints[:min(len(n.Spec.Taints), r.Intn(2))]
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("8"),
		corev1.ResourceCPU: *resource.NewQuantity(int64(r.Intn(8)), resource.DecimalSI),
		"example.com/gpu":  resource.MustParse("2")}
	return n
}

// randomPod is a Pod that waits for a node, or one that has been bound by hand.
func randomPod(fill *randfill.Filler, name string, r *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{}
	fill.Fill(p)
	p.Name, p.UID, p.Spec.SchedulerName, p.DeletionTimestamp = name, types.UID(name), corev1.DefaultSchedulerName, nil
	p.Spec.NodeName = ""
	if r.Intn(3) == 0 {
		p.Spec.NodeName = fmt.Sprintf("n%d", r.Intn(4))
	} else { // only a node says what it gives and what it is asked to give
		p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	}
	// The API takes each type of condition once.
	slices.SortFunc(p.Status.Conditions, func(a, b corev1.PodCondition) int { return cmp.Compare(a.Type, b.Type) })
	p.Status.Conditions = slices.CompactFunc(p.Status.Conditions,
		func(a, b corev1.PodCondition) bool { return a.Type == b.Type })
	if r.Intn(4) > 0 {
		p.Spec.SchedulingGates = nil
	}
	if r.Intn(8) > 0 {
		p.Spec.ResourceClaims = nil
	}
	return p
}
