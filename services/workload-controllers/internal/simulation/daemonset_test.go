package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// serving returns how many of the nodes that are to run a Pod have one of these that is available.
func (d daemons) serving(pods map[types.UID]*corev1.Pod, now time.Time) int {
	minReady := time.Duration(d.set.Spec.MinReadySeconds) * time.Second
	served := map[string]bool{}
	for _, pod := range pods {
		if d.wanted(target(pod)) && podview.IsActive(pod) && podview.IsAvailable(pod, minReady, now) {
			served[target(pod)] = true
		}
	}
	return len(served)
}

// boundedPass is a pass that is held to the strategy's bounds, worked out apart from the controller: those of the
// spec and the nodes that it sees. However many Pods it sees serve, so many really do afterwards, or the least.
func (f *fleet) boundedPass() bool {
	f.t.Helper()
	seen := daemons{set: f.at(workloads).set, nodes: f.at(nodes).nodes}
	rolling, desired := seen.set.Spec.UpdateStrategy.RollingUpdate, seen.desired()
	before := seen.serving(f.at(members).pods, f.now)
	surge, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, desired, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, desired, true)
	if surge == 0 {
		unavailable = max(1, unavailable)
	}
	if !f.pass() {
		return false
	}
	live := map[string]int{}
	for _, pod := range f.last().pods {
		if podview.IsActive(pod) {
			live[target(pod)]++
		}
	}
	for node, n := range live {
		if n > 1 && surge == 0 && rolling.MaxSurge.String() == "0" || n > 2 {
			f.fail("%d Pods on %s", n, node)
		}
	}
	if now := seen.serving(f.last().pods, f.now); now < before && now < desired-unavailable {
		f.fail("it saw %d nodes of %d served, %d still are; %d may lack", before, desired, now, unavailable)
	}
	return true
}

// expectDone fails unless every node has what it should, and the status says so.
func (f *fleet) expectDone() {
	f.t.Helper()
	d, on := f.last(), map[string]int{}
	for _, pod := range d.pods {
		on[target(pod)]++
		if image := pod.Spec.Containers[0].Image; image != d.set.Spec.Template.Spec.Containers[0].Image {
			f.fail("%s is of %s", pod.Name, image)
		}
	}
	misscheduled := 0
	for node, n := range on {
		switch {
		case n > 1:
			f.fail("%d Pods on %s", n, node)
		case !d.wanted(node) && (d.nodes[node] == nil || d.nodes[node].Labels["fast"] != "yes"):
			f.fail("a Pod on %s", node)
		case !d.wanted(node):
			misscheduled++
		}
	}
	want, s := int32(d.desired()), d.set.Status
	if s.DesiredNumberScheduled != want || s.CurrentNumberScheduled != want || s.NumberReady != want ||
		s.NumberAvailable != want || s.UpdatedNumberScheduled != want || s.NumberUnavailable != 0 ||
		int(s.NumberMisscheduled) != misscheduled || s.ObservedGeneration != d.set.Generation {
		f.fail("%d nodes are to run a Pod, %d have one in excess", want, misscheduled)
	}
	if len(d.revisions) > 3 {
		f.fail("%d revisions are left of 2 and the current one", len(d.revisions))
	}
}

// finish lets nothing fail any more, and asks for one good template.
func (f *fleet) finish() {
	f.faulty, f.chaos = false, false
	f.edit("the end", func(set *appsv1.DaemonSet) { set.Spec.Template = fast("web:4") })
	f.settle()
	f.expectDone()
	if f.pass() {
		f.fail("at rest a pass changes something")
	}
}

// anyStrategy is a rolling update with or without surge.
func anyStrategy(random *rand.Rand) appsv1.DaemonSetUpdateStrategy {
	bound, none := intstr.FromInt32(1+random.Int32N(3)), intstr.FromInt32(0)
	if random.IntN(2) == 0 {
		bound = intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(100)))
	}
	rolling := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &bound, MaxSurge: &none}
	if random.IntN(2) == 0 {
		rolling = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &none, MaxSurge: &bound}
	}
	return appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: rolling}
}

// meddle does something that a user or a machine may do at any time.
func (f *fleet) meddle(random *rand.Rand) {
	switch random.IntN(30) {
	case 0:
		f.changeNode()
	case 1:
		image := []string{"web:1", "web:2", "web:3", "web:bad"}[random.IntN(4)]
		f.edit(image, func(set *appsv1.DaemonSet) { set.Spec.Template = fast(image) })
	case 2:
		seconds := random.Int32N(5)
		f.edit("another minReadySeconds", func(set *appsv1.DaemonSet) { set.Spec.MinReadySeconds = seconds })
	}
}

// step lets one thing happen, of which pass is one.
func (f *fleet) step(random *rand.Rand, pass func() bool) {
	f.now = f.now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
	if uids := sorted(f.last().pods); len(uids) > 0 && random.IntN(3) > 0 {
		f.stepPod(uids[random.IntN(len(uids))])
	} else {
		pass()
	}
}

// SET-114 SET-152 SET-156 SET-160: through updates, ways back, and nodes that come, go and change, whichever writes
// fail and whenever the controller ends, no pass breaks the bounds of the update or makes a second Pod without
// surge. Either the controller is late, or Pods and nodes fail: one that has failed unseen leaves fewer than it can
// know. When all of that has ended, every node has what it should.
func TestDaemonsKeepTheirBounds(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			f := newFleet(t, seed, anyStrategy(random))
			f.faulty, f.chaos = true, seed%2 == 0
			f.begin()
			for range 300 {
				f.meddle(random)
				if f.chaos {
					f.lookAtAll()
				} else if random.IntN(2) == 0 {
					f.look()
				}
				f.step(random, f.boundedPass)
			}
			f.finish()
		})
	}
}

// SET-114 SET-160: whatever fails, and however old the picture is that the controller begins with, when that has
// ended every node has what it should.
func TestADaemonSetAlwaysEndsWell(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			f := newFleet(t, seed, anyStrategy(random))
			f.faulty, f.stale, f.chaos = true, true, true
			f.begin()
			for range 400 {
				f.meddle(random)
				if random.IntN(2) == 0 {
					f.look()
				}
				f.step(random, f.pass)
			}
			f.finish()
		})
	}
}
