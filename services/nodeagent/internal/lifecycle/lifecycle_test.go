package lifecycle

import (
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
)

func entry(kind Kind) Entry {
	c := &corev1.Container{Name: "c"}
	if kind == Sidecar {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	return Entry{Spec: c, Kind: kind}
}

func TestRestarts(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy corev1.RestartPolicy
		kind   Kind
		exit   int32
		want   bool
	}{
		{"POD-093 Always after success", corev1.RestartPolicyAlways, Main, 0, true},
		{"POD-093 Always after failure", corev1.RestartPolicyAlways, Main, 1, true},
		{"POD-094 OnFailure after success", corev1.RestartPolicyOnFailure, Main, 0, false},
		{"POD-094 JOB-054 OnFailure after failure", corev1.RestartPolicyOnFailure, Main, 137, true},
		{"POD-095 Never after failure", corev1.RestartPolicyNever, Main, 1, false},
		{"POD-096 POD-098 init under OnFailure", corev1.RestartPolicyOnFailure, Init, 1, true},
		{"POD-199 init that succeeded under Always", corev1.RestartPolicyAlways, Init, 0, false},
		{"POD-199 init that failed under Always", corev1.RestartPolicyAlways, Init, 1, true},
		{"POD-200 init under Never", corev1.RestartPolicyNever, Init, 1, false},
		{"POD-097 sidecar under Never", corev1.RestartPolicyNever, Sidecar, 0, true},
		{"SAF-015 POD-253 ephemeral under Always", corev1.RestartPolicyAlways, Ephemeral, 1, false},
		{"unset policy is Always", "", Main, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: row.policy}}
			if got := entry(row.kind).Restarts(pod, row.exit); got != row.want {
				t.Errorf("Restarts = %v, want %v", got, row.want)
			}
		})
	}
}

// Rules take precedence over policies, except for an init container that has succeeded, and an ephemeral one.
func TestRestartsByRule(t *testing.T) {
	for kind, want := range map[Kind]map[int32]bool{
		Main: {0: true, 1: false, 42: true}, Init: {0: false, 1: false, 42: true},
		Sidecar: {0: true, 1: true, 42: true}, Ephemeral: {0: false, 1: false, 42: false},
	} {
		e := entry(kind)
		e.Spec.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{0, 42}}}}
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
		for code, restarts := range want {
			if got := e.Restarts(pod, code); got != restarts {
				t.Errorf("%s after exit code %d: %v, want %v", kind, code, got, restarts)
			}
		}
	}
}

// An init container that has succeeded can require it like any other; an ephemeral one never does.
func TestRestartsAll(t *testing.T) {
	for kind, want := range map[Kind]map[int32]bool{
		Main: {0: true, 1: false, 42: true}, Init: {0: true, 1: false, 42: true},
		Sidecar: {0: true, 1: false, 42: true}, Ephemeral: {0: false, 1: false, 42: false},
	} {
		e := entry(kind)
		e.Spec.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{0, 42}}}}
		for code, all := range want {
			if got := e.RestartsAll(code); got != all {
				t.Errorf("%s after exit code %d: %v, want %v", kind, code, got, all)
			}
		}
	}
}

// POD-100 POD-101
func TestCrashDelay(t *testing.T) {
	want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300}
	for n, w := range want {
		if got := CrashDelay(n); got != w*time.Second {
			t.Errorf("CrashDelay(%d) = %v, want %v", n, got, w*time.Second)
		}
	}
	if got := CrashDelay(100000); got != 300*time.Second {
		t.Errorf("CrashDelay of many restarts = %v, want 300s", got)
	}
}

func TestEntriesKeepOrderAndKind(t *testing.T) {
	always := ptr.To(corev1.ContainerRestartPolicyAlways)
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i1"}, {Name: "s1", RestartPolicy: always}, {Name: "i2"}},
		Containers:     []corev1.Container{{Name: "m1"}, {Name: "m2"}},
		EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e1"}}},
	}}
	var got []string
	for _, e := range Entries(pod) {
		got = append(got, string(e.Kind)+" "+e.Path)
	}
	want := []string{ // POD-221 POD-238
		"Init spec.initContainers{i1}", "Sidecar spec.initContainers{s1}", "Init spec.initContainers{i2}",
		"Main spec.containers{m1}", "Main spec.containers{m2}", "Ephemeral spec.ephemeralContainers{e1}",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Entries = %q, want %q", got, want)
	}
}

func TestStopWave(t *testing.T) {
	now := time.Unix(1000, 0)
	always := ptr.To(corev1.ContainerRestartPolicyAlways)
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i"}, {Name: "s1", RestartPolicy: always},
			{Name: "s2", RestartPolicy: always}},
		Containers: []corev1.Container{{Name: "m1"}, {Name: "m2"}},
	}}
	entries := Entries(pod)
	for _, row := range []struct {
		name     string
		alive    []string
		deadline time.Duration
		want     []string
	}{
		{"POD-159 main containers all at once", []string{"s1", "s2", "m1", "m2"}, 30, []string{"m1", "m2"}},
		{"POD-243 sidecars wait for the last main", []string{"s1", "s2", "m2"}, 30, []string{"m2"}},
		{"POD-243 then in reverse order", []string{"s1", "s2"}, 30, []string{"s2"}},
		{"POD-243 the first sidecar ends last", []string{"s1"}, 30, []string{"s1"}},
		{"an init container goes before sidecars", []string{"i", "s1"}, 30, []string{"i"}},
		{"POD-244 past the deadline all at once", []string{"s1", "s2", "m2"}, 0, []string{"s1", "s2", "m2"}},
		{"nothing is alive", nil, 30, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			alive := map[string]bool{}
			for _, n := range row.alive {
				alive[n] = true
			}
			if got := StopWave(entries, alive, now, now.Add(row.deadline*time.Second)); !slices.Equal(got, row.want) {
				t.Errorf("StopWave = %v, want %v", got, row.want)
			}
		})
	}
}

func TestKillAfter(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		name string
		left time.Duration
		want time.Duration
	}{
		{"SAF-136 full grace", 30 * time.Second, 30 * time.Second},
		{"SAF-134 after a hook of 10 s", 20 * time.Second, 20 * time.Second},
		{"SAF-136 POD-156 hook used all of it", 0, 2 * time.Second},
		{"SAF-136 grace of 1 s", time.Second, 2 * time.Second},
		{"POD-175 long overdue", -time.Hour, 2 * time.Second},
		{"a fraction is rounded up", 2500 * time.Millisecond, 3 * time.Second},
	} {
		if got := KillAfter(now, now.Add(row.left)); got != row.want {
			t.Errorf("%s: KillAfter = %v, want %v", row.name, got, row.want)
		}
	}
}

// SAF-129: a shorter period takes effect, a longer one does not.
func TestTerminationOnlyShortens(t *testing.T) {
	began := time.Unix(1000, 0)
	var none *Termination
	term := none.Shorten(began, 30*time.Second)
	later := began.Add(3 * time.Second)
	if got := term.Shorten(later, 5*time.Second).Deadline; !got.Equal(began.Add(5 * time.Second)) {
		t.Errorf("deadline after shortening = %v, want 5 s after the beginning", got.Sub(began))
	}
	if got := term.Shorten(later, 60*time.Second).Deadline; !got.Equal(began.Add(30 * time.Second)) {
		t.Errorf("deadline after lengthening = %v, want the old one", got.Sub(began))
	}
}

// A failed step is tried again after 1 s, twice as long each time, up to a minute.
func TestStepDelay(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 6: 32, 7: 60, 8: 60, 1000: 60} {
		if got := StepDelay(failures); got != want*time.Second {
			t.Errorf("after %d failures %v, want %d s", failures, got, want)
		}
	}
}

func TestPullDelay(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 10, 2: 20, 5: 160, 6: 300, 7: 300, 1000: 300} {
		if got := PullDelay(failures); got != want*time.Second {
			t.Errorf("after %d failures %v, want %d s", failures, got, want)
		}
	}
}

// A Pod without a period has 30 s. A probe's own period takes precedence over the Pod's.
func TestGrace(t *testing.T) {
	for _, row := range []struct {
		pod, probe        *int64
		grace, probeGrace time.Duration
	}{
		{nil, nil, 30, 30},
		{ptr.To[int64](0), nil, 0, 0},
		{ptr.To[int64](7), nil, 7, 7},
		{ptr.To[int64](7), ptr.To[int64](0), 7, 0},
		{ptr.To[int64](7), ptr.To[int64](3), 7, 3},
		{ptr.To[int64](7), ptr.To[int64](9), 7, 9},
		{nil, ptr.To[int64](1), 30, 1},
		{ptr.To[int64](-1), ptr.To[int64](-1), 0, 0},
		{ptr.To[int64](math.MaxInt64), ptr.To[int64](1 << 34), seconds.Most, seconds.Most},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: row.pod}}
		if got := Grace(pod); got != row.grace*time.Second {
			t.Errorf("%+v: %v", row, got)
		}
		if got := ProbeGrace(pod, row.probe); got != row.probeGrace*time.Second {
			t.Errorf("%+v: %v for the probe", row, got)
		}
	}
}

func TestBegan(t *testing.T) {
	pod := &corev1.Pod{}
	if Began(pod) {
		t.Error("a new Pod")
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
	if Began(pod) {
		t.Error("a Pod that waits")
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", ContainerID: "x://1"}}
	if !Began(pod) {
		t.Error("a Pod with an init container that ran")
	}
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses[0].ContainerID = nil, "x://2"
	if !Began(pod) {
		t.Error("a Pod with a container that ran")
	}
}
