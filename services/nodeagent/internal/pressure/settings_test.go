package pressure

import (
	"fmt"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

// rulesOf returns the rules that flags define.
func rulesOf(t *testing.T, args ...string) Rules {
	t.Helper()
	s := DefaultSettings()
	fs := pflag.NewFlagSet("nodeagent", pflag.ContinueOnError)
	s.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	rules, err := s.Rules()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func (t Threshold) text() string {
	out := fmt.Sprintf("%s<%s", t.Signal, t.Least.Quantity.String())
	if t.Least.Percent != 0 {
		out = fmt.Sprintf("%s<%v%%", t.Signal, t.Least.Percent)
	}
	if t.Soft {
		out += fmt.Sprintf(" for %v", t.Grace)
	}
	if reclaim := t.Reclaim.Of(1000); reclaim > 0 {
		out += fmt.Sprintf(" +%d", reclaim)
	}
	return out
}

// The defaults are the kubelet's, a flag replaces all of them, and thresholds that are switched off are left out.
func TestRules(t *testing.T) {
	for _, r := range []struct {
		args []string
		want string
	}{
		{nil, "[memory.available<100Mi nodefs.available<10% imagefs.available<15% nodefs.inodesFree<5% " +
			"imagefs.inodesFree<5%]"},
		{[]string{"--eviction-hard=pid.available<10", "--eviction-hard=memory.available<1Gi"},
			"[memory.available<1Gi pid.available<10]"},
		{[]string{"--eviction-hard=pid.available<10,memory.available<1Gi", "--eviction-hard=pid.available<20"},
			"[memory.available<1Gi pid.available<20]"},
		{[]string{"--eviction-hard="}, "[]"},
		{[]string{"--eviction-hard=nodefs.available<0%,imagefs.available<100%,memory.available<0",
			"--eviction-hard=nodefs.inodesFree<99%"}, "[nodefs.inodesFree<99%]"},
		{[]string{"--eviction-hard=memory.available<100", "--eviction-soft=memory.available<30%,pid.available<7",
			"--eviction-soft-grace-period=memory.available=90s,pid.available=0s",
			"--eviction-minimum-reclaim=memory.available=5%"},
			"[memory.available<100 +50 memory.available<30% for 1m30s +50 pid.available<7 for 0s]"},
		{[]string{"--eviction-hard=", "--eviction-soft=pid.available<0",
			"--eviction-soft-grace-period=pid.available=1s"}, "[]"},
	} {
		rules := rulesOf(t, r.args...)
		got := []string{}
		for _, threshold := range rules.Thresholds {
			got = append(got, threshold.text())
		}
		if fmt.Sprint(got) != r.want {
			t.Errorf("%v: %v, want %s", r.args, got, r.want)
		}
	}
	if got := rulesOf(t); got.Transition != 5*time.Minute || got.MaxPodGrace != 0 {
		t.Errorf("conditions stay for %v and Pods get %v, want 5m and 0s", got.Transition, got.MaxPodGrace)
	}
	if got := rulesOf(t, "--eviction-max-pod-grace-period=90").MaxPodGrace; got != 90*time.Second {
		t.Errorf("Pods get %v, want 90s", got)
	}
}

// The headroom consists only of the hard thresholds of memory and of the node's disk.
func TestHeadroom(t *testing.T) {
	for _, r := range []struct {
		args            []string
		memory, storage string
	}{
		{nil, "100Mi", "1Gi"},
		{[]string{"--eviction-hard=memory.available<25%,imagefs.available<50%,pid.available<7"}, "2Gi", ""},
		{[]string{"--eviction-hard=nodefs.available<3Gi,nodefs.inodesFree<5%", "--eviction-soft=memory.available<1Gi",
			"--eviction-soft-grace-period=memory.available=1s"}, "", "3Gi"},
	} {
		got := rulesOf(t, r.args...).Headroom(8<<30, 10<<30)
		for name, want := range map[corev1.ResourceName]string{"memory": r.memory, "ephemeral-storage": r.storage} {
			quantity, ok := got[name]
			if ok != (want != "") || ok && quantity.String() != want {
				t.Errorf("%v: %s %s, want %q", r.args, name, quantity.String(), want)
			}
		}
		if len(got) > 2 {
			t.Errorf("%v: %v", r.args, got)
		}
	}
}
