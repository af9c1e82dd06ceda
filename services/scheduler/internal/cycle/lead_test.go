package cycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

// A standby knows the cluster and decides nothing; when it takes over it begins with the oldest Pod of a priority.
func TestLead(t *testing.T) {
	f := newFixture(t)
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	created := func(seconds int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
		}
	}
	f.node("n", "3")
	f.add(pod("young", "1", created(9)), pod("old", "1", created(1)), pod("running", "1", onNode("n")))
	f.want("")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("old:n young:n")
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.Failed("uid-old", f.now)
	f.wait(time.Minute)
	f.want("")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("old:n")
}

// A standby that takes over tries Pods of one second by their UID, so that two of them would do the same.
func TestLeadOrdersPodsOfOneSecond(t *testing.T) {
	f := newFixture(t)
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.node("n", "9")
	f.add(pod("c", "1"), pod("a", "1"), pod("d", "1"), pod("b", "1"))
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("a:n b:n c:n d:n")
	f.add(pod("e", "1"))
	f.Lead(corev1.DefaultSchedulerName, true, f.now) // it leads already
	f.want("e:n")
}

// What a new leader takes up: neither what is gated nor what has its node.
func TestLeadTakesUpWhatWaits(t *testing.T) {
	gate := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }
	f := newFixture(t)
	f.node("n", "9")
	f.add(pod("placed", "1"))
	f.want("placed:n")
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.add(pod("gated", "1", gate), pod("waits", "1"),
		pod("other", "1", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("waits:n")
}

// Each profile is led by itself and judges by its own rules: of two Pods that are alike one may go where the taint is,
// and prefers what is used most.
func TestProfiles(t *testing.T) {
	settings, err := config.Parse([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: second
  plugins:
    filter: {disabled: [{name: TaintToleration}]}
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}`))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, now: start, Cycle: cycle.New(cycle.Config{Profiles: settings.Profiles})}
	second := func(p *corev1.Pod) { p.Spec.SchedulerName = "second" }
	f.node("free", "4")
	f.node("used", "4")
	f.node("tainted", "4", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	})
	f.add(pod("running", "2", onNode("used")), pod("more", "3", onNode("tainted")))
	f.add(pod("a", "1"), pod("b", "1", second))
	f.want("")
	f.Lead("second", true, f.now)
	f.want("b:tainted")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("a:free")
	f.add(pod("c", "1", second), pod("d", "1"))
	f.want("c:used d:free")
}
