package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// with makes an input: main container "m" in a ready sandbox, changed by the options.
func with(options ...func(*Input)) Input {
	in := Input{
		Now: now, StartedAt: now.Add(-time.Minute), Runtime: "containerd", HostIPs: []string{"10.0.0.1"},
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1", Generation: 3},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{{Name: "m", Image: "image:1"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		},
		Observed: &observed.Pod{Sandboxes: []observed.Sandbox{{ID: "s0", Ready: true,
			IPs: []string{"10.1.0.5", "fd00::5"}}}},
		Plan:   podstate.Plan{Goal: podstate.Run},
		Probes: map[string]podstate.Probe{}, Messages: map[string]string{},
	}
	for _, o := range options {
		o(&in)
	}
	in.Observed.Sort()
	return in
}

func noSandbox(in *Input) { in.Observed.Sandboxes = nil }

func initC(c corev1.Container) func(*Input) {
	return func(in *Input) { in.Pod.Spec.InitContainers = append(in.Pod.Spec.InitContainers, c) }
}

func sidecar(name string) func(*Input) {
	return initC(corev1.Container{Name: name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
}

func instance(name string, attempt uint32, state observed.ContainerState, code ...int32) func(*Input) {
	return func(in *Input) {
		c := observed.Container{ID: name + string('0'+rune(attempt)), SandboxID: "s0", Name: name, Attempt: attempt,
			State:     state,
			StartedAt: now.Add(-10 * time.Second), Image: "image:1", ImageID: "sha256:1"}
		if state == observed.Exited {
			c.FinishedAt, c.ExitCode = now.Add(-time.Second), code[0]
		}
		in.Observed.Containers = append(in.Observed.Containers, c)
	}
}

func plan(edit func(*podstate.Plan)) func(*Input) { return func(in *Input) { edit(&in.Plan) } }

func ended(goal podstate.Goal) func(*Input) {
	return plan(func(p *podstate.Plan) { p.Goal, p.Stopped = goal, true })
}

func waits(name, reason string) func(*Input) {
	return plan(func(p *podstate.Plan) { p.Waiting = map[string]podstate.Waiting{name: {Reason: reason}} })
}

func TestPhase(t *testing.T) {
	for _, r := range []struct {
		name  string
		input []func(*Input)
		want  corev1.PodPhase
	}{
		{"POD-073 nothing yet", []func(*Input){noSandbox}, corev1.PodPending},
		{"POD-070 POD-074 running", []func(*Input){instance("m", 0, observed.Running)}, corev1.PodRunning},
		{"POD-074 only container in crash back-off", []func(*Input){instance("m", 1, observed.Exited, 1),
			waits("m", "CrashLoopBackOff")}, corev1.PodRunning},
		{"DEP-060 image cannot be pulled", []func(*Input){waits("m", "ImagePullBackOff")}, corev1.PodPending},
		{"POD-203 initialising", []func(*Input){initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Running)},
			corev1.PodPending},
		{"POD-203 between init and main", []func(*Input){initC(corev1.Container{Name: "i"}),
			instance("i", 0, observed.Exited, 0)}, corev1.PodPending},
		{"POD-075 all ended well", []func(*Input){instance("m", 0, observed.Exited, 0), ended(podstate.Finish)},
			corev1.PodSucceeded},
		{"POD-076 JOB-055 one ended badly", []func(*Input){instance("m", 0, observed.Exited, 3),
			ended(podstate.Finish)}, corev1.PodFailed},
		{"POD-076 not while something may run", []func(*Input){instance("m", 0, observed.Exited, 3),
			plan(func(p *podstate.Plan) { p.Goal = podstate.Finish })}, corev1.PodRunning},
		{"POD-248 a sidecar's exit code does not count", []func(*Input){sidecar("s"), instance("s", 0, observed.Exited,
			143), instance("m", 0, observed.Exited, 0), ended(podstate.Finish)}, corev1.PodSucceeded},
		{"POD-200 init failure", []func(*Input){initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Exited,
			1), ended(podstate.Finish)}, corev1.PodFailed},
		{"POD-078 POD-166 deleted, ended by TERM", []func(*Input){instance("m", 0, observed.Exited, 143),
			ended(podstate.Terminate)}, corev1.PodFailed},
		{"POD-078 POD-166 deleted, ended well", []func(*Input){instance("m", 0, observed.Exited, 0),
			ended(podstate.Terminate)}, corev1.PodSucceeded},
		{"POD-246 deleted, a sidecar ended by KILL", []func(*Input){sidecar("s"), instance("s", 0, observed.Exited,
			137), instance("m", 0, observed.Exited, 0), ended(podstate.Terminate)}, corev1.PodSucceeded},
		{"POD-078 deleted before a restart, ended well", []func(*Input){instance("m", 3, observed.Exited, 0),
			restarts(corev1.RestartPolicyAlways), ended(podstate.Terminate)}, corev1.PodSucceeded},
		{"POD-078 deleted before a restart by rule, ended well", []func(*Input){instance("m", 3, observed.Exited, 0),
			restarts(corev1.RestartPolicyNever, 0), ended(podstate.Terminate)}, corev1.PodSucceeded},
		{"POD-078 deleted before a restart by rule, ended badly", []func(*Input){instance("m", 3, observed.Exited, 42),
			restarts(corev1.RestartPolicyOnFailure, 0, 42), ended(podstate.Terminate)}, corev1.PodFailed},
		{"POD-078 deleted before a restart, ended badly", []func(*Input){instance("m", 3, observed.Exited, 1),
			restarts(corev1.RestartPolicyOnFailure), ended(podstate.Terminate)}, corev1.PodFailed},
		{"POD-074 before a restart by rule, ended well", []func(*Input){instance("m", 3, observed.Exited, 0),
			restarts(corev1.RestartPolicyNever, 0), waits("m", "CrashLoopBackOff")}, corev1.PodRunning},
		{"deleted before it began", []func(*Input){noSandbox, ended(podstate.Terminate)}, corev1.PodFailed},
		{"SAF-122 terminal stays terminal", []func(*Input){instance("m", 0, observed.Running),
			func(in *Input) { in.Pod.Status.Phase = corev1.PodSucceeded }}, corev1.PodSucceeded},
		{"SAF-019 an ephemeral container does not count", []func(*Input){instance("m", 0, observed.Running), ephemeral,
			instance("e", 0, observed.Exited, 1)}, corev1.PodRunning},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := Compute(with(r.input...)).Phase; got != r.want {
				t.Errorf("phase %s, want %s", got, r.want)
			}
		})
	}
}

// restarts makes a Pod's container also restart when it ends with one of the codes.
func restarts(policy corev1.RestartPolicy, codes ...int32) func(*Input) {
	return func(in *Input) {
		in.Pod.Spec.RestartPolicy = policy
		if len(codes) > 0 {
			in.Pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes}}}
		}
	}
}

func ephemeral(in *Input) {
	in.Pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}
}

func TestContainerStates(t *testing.T) {
	for _, r := range []struct {
		name        string
		input       []func(*Input)
		state, last string
		ready       bool
		restarts    int32
	}{
		{"POD-084 being created", nil, "ContainerCreating", "", false, 0},
		{"POD-219 waiting for init containers", []func(*Input){initC(corev1.Container{Name: "i"})}, "PodInitializing",
			"", false, 0},
		{"POD-083 POD-087 running", []func(*Input){instance("m", 0, observed.Running)}, "running", "", true, 0},
		{"POD-086 its postStart hook runs", []func(*Input){instance("m", 0, observed.Running),
			plan(func(p *podstate.Plan) { p.Hooking = map[string]bool{"m0": true} })},
			"ContainerCreating", "", false, 0},
		{"POD-104 in back-off", []func(*Input){instance("m", 2, observed.Exited, 1), waits("m", "CrashLoopBackOff")},
			"CrashLoopBackOff", "Error 1", false, 2},
		{"POD-088 ended", []func(*Input){instance("m", 0, observed.Exited, 0)}, "Completed 0", "", false, 0},
		{"DEP-156 restarted", []func(*Input){instance("m", 0, observed.Exited, 1), instance("m", 1, observed.Running)},
			"running", "Error 1", true, 1},
		{"the runtime's own reason", []func(*Input){instance("m", 0, observed.Exited, 137),
			func(in *Input) { in.Observed.Containers[0].Reason = "OOMKilled" }},
			"OOMKilled 137", "", false, 0},
		{"POD-143 not started before its startup probe", []func(*Input){instance("m", 0, observed.Running), probed},
			"running", "", false, 0},
		{"POD-142 not ready before its readiness probe", []func(*Input){instance("m", 0, observed.Running),
			readinessProbe}, "running", "", false, 0},
		{"POD-144 and then ready", []func(*Input){instance("m", 0, observed.Running), readinessProbe, func(in *Input) {
			in.Probes["m0"] = podstate.Probe{Started: true, Ready: true}
		}}, "running", "", true, 0},
		{"SAF-138 deleted, never started", []func(*Input){noSandbox, ended(podstate.Terminate)},
			"ContainerStatusUnknown 137", "", false, 0},
		{"the record of a running one is lost", []func(*Input){ended(podstate.Finish), func(in *Input) {
			in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m", RestartCount: 2,
				ContainerID: "containerd://x",
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}}, "ContainerStatusUnknown 137", "", false, 2},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := Compute(with(r.input...)).ContainerStatuses[0]
			if got := describe(s.State); got != r.state {
				t.Errorf("state %q, want %q", got, r.state)
			}
			if got := describe(s.LastTerminationState); got != r.last {
				t.Errorf("last state %q, want %q", got, r.last)
			}
			if s.Ready != r.ready || s.RestartCount != r.restarts {
				t.Errorf("ready %v after %d restarts, want %v after %d", s.Ready, s.RestartCount, r.ready, r.restarts)
			}
		})
	}
}

func probed(in *Input) { in.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{} }

func readinessProbe(in *Input) { in.Pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }

func describe(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("%s %d", s.Terminated.Reason, s.Terminated.ExitCode)
	case s.Waiting != nil:
		return s.Waiting.Reason
	}
	return ""
}

func TestConditions(t *testing.T) {
	running := instance("m", 0, observed.Running)
	gate := func(in *Input) {
		in.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}
	gateIs := func(s corev1.ConditionStatus) func(*Input) {
		return func(in *Input) {
			in.Pod.Status.Conditions = append(in.Pod.Status.Conditions, corev1.PodCondition{Type: "example.com/gate",
				Status: s})
		}
	}
	const start, initialized, containers, ready = corev1.PodReadyToStartContainers, corev1.PodInitialized,
		corev1.ContainersReady, corev1.PodReady
	for _, r := range []struct {
		name   string
		input  []func(*Input)
		kind   corev1.PodConditionType
		want   corev1.ConditionStatus
		reason string
	}{
		{"POD-127 no sandbox yet", []func(*Input){noSandbox}, start, "False", ""},
		{"POD-109 POD-129 network configured", nil, start, "True", ""},
		{"POD-128 the sandbox is gone", []func(*Input){func(in *Input) { in.Observed.Sandboxes[0].Ready = false }},
			start, "False", ""},
		{"POD-131 no init containers", []func(*Input){noSandbox}, initialized, "True", ""},
		{"POD-203 init runs", []func(*Input){initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Running)},
			initialized, "False", "ContainersNotInitialized"},
		{"POD-111 POD-130 init done", []func(*Input){initC(corev1.Container{Name: "i"}),
			instance("i", 0, observed.Exited, 0)}, initialized, "True", ""},
		{"POD-111 a sidecar has started", []func(*Input){sidecar("s"), instance("s", 0, observed.Running)}, initialized,
			"True", ""},
		{"POD-201 not ready while initialising", []func(*Input){initC(corev1.Container{Name: "i"}),
			instance("i", 0, observed.Running)}, ready, "False", "ContainersNotReady"},
		{"POD-110 containers ready", []func(*Input){running}, containers, "True", ""},
		{"POD-112 ready", []func(*Input){running}, ready, "True", ""},
		{"POD-242 a sidecar counts", []func(*Input){running, sidecar("s"), instance("s", 0, observed.Running),
			func(in *Input) {
				in.Pod.Spec.InitContainers[0].ReadinessProbe = &corev1.Probe{}
			}}, ready, "False", "ContainersNotReady"},
		{"POD-119 POD-121 gate without a condition", []func(*Input){running, gate}, ready, "False",
			"ReadinessGatesNotReady"},
		{"POD-121 gate is false", []func(*Input){running, gate, gateIs("False")}, ready, "False",
			"ReadinessGatesNotReady"},
		{"POD-121 containers are ready all the same", []func(*Input){running, gate, gateIs("False")}, containers,
			"True", ""},
		{"POD-120 gate is true", []func(*Input){running, gate, gateIs("True")}, ready, "True", ""},
		{"a Pod that succeeded is not ready", []func(*Input){instance("m", 0, observed.Exited, 0),
			ended(podstate.Finish)}, ready, "False", "PodCompleted"},
		{"a Pod that failed is not ready", []func(*Input){instance("m", 0, observed.Exited, 1), ended(podstate.Finish)},
			ready, "False", "PodFailed"},
		{"SAF-019 an ephemeral container does not count", []func(*Input){running, ephemeral}, ready, "True", ""},
		{"POD-107 scheduled", nil, corev1.PodScheduled, "True", ""},
		{"POD-122 foreign conditions stay", []func(*Input){running, gateIs("False")}, "example.com/gate", "False", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			out := Compute(with(r.input...))
			c := podview.Condition(&corev1.Pod{Status: out}, r.kind)
			if c == nil || c.Status != r.want || c.Reason != r.reason {
				t.Fatalf("%s is %+v, want %s %s", r.kind, c, r.want, r.reason)
			}
			if r.kind != "example.com/gate" && c.ObservedGeneration != 3 {
				t.Errorf("observed generation %d, want that of the Pod", c.ObservedGeneration)
			}
		})
	}
}

// POD-116: the time of a condition changes with its status only.
func TestTransitionTime(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	in := with(instance("m", 0, observed.Running), func(in *Input) {
		in.Pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: old},
		}
	})
	out := corev1.Pod{Status: Compute(in)}
	if got := podview.Condition(&out, corev1.PodReady).LastTransitionTime; !got.Equal(&old) {
		t.Errorf("Ready did not change but its time moved to %v", got)
	}
	if got := podview.Condition(&out, corev1.ContainersReady).LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("ContainersReady changed but its time is %v", got)
	}
}

func TestAddresses(t *testing.T) {
	s := Compute(with())
	// SAF-113 POD-060
	if s.HostIP != "10.0.0.1" || s.PodIP != "10.1.0.5" || len(s.PodIPs) != 2 || s.PodIPs[0].IP != s.PodIP {
		t.Errorf("addresses %q %q %v", s.HostIP, s.PodIP, s.PodIPs)
	}
	if s := Compute(with(func(in *Input) { in.Pod.Spec.HostNetwork = true })); s.PodIP != "10.0.0.1" {
		t.Errorf("a Pod on the host's network has address %q", s.PodIP)
	}
	ended := with(ended(podstate.Finish), func(in *Input) {
		in.Observed.Sandboxes[0].Ready, in.Pod.Status.PodIP = false, "10.1.0.5"
	})
	if s := Compute(ended); s.PodIP != "10.1.0.5" {
		t.Errorf("a Pod that has ended lost its address")
	}
}

// A status that is computed again from the written one is the same: nothing is written twice.
func TestComputeIsStable(t *testing.T) {
	in := with(instance("m", 0, observed.Exited, 1), instance("m", 1, observed.Running), sidecar("s"),
		instance("s", 0, observed.Running))
	in.Now = in.Now.Add(300 * time.Millisecond)
	in.Pod.Status = Compute(in)
	again := in
	again.Now = in.Now.Add(time.Hour)
	if out := Compute(again); !reflect.DeepEqual(out, in.Pod.Status) {
		t.Errorf("computed again:\n%+v\nfirst:\n%+v", out, in.Pod.Status)
	}
}

func TestComputeDoesNotChangeItsInput(t *testing.T) {
	in := with(instance("m", 0, observed.Running))
	before := in.Pod.DeepCopy()
	Compute(in)
	if !reflect.DeepEqual(before, in.Pod) {
		t.Error("the Pod was changed")
	}
}

func TestOutcome(t *testing.T) {
	in := with(instance("m", 0, observed.Exited, 0), ended(podstate.Finish), plan(func(p *podstate.Plan) {
		p.Outcome = &podstate.Outcome{Reason: "DeadlineExceeded", Message: "too long"}
	}))
	if s := Compute(in); s.Phase != corev1.PodFailed || s.Reason != "DeadlineExceeded" || s.Message != "too long" {
		t.Errorf("phase %s, reason %q, message %q", s.Phase, s.Reason, s.Message)
	}
	// SAF-071: neither the deadline nor a plain end is a disruption.
	if c := podview.Condition(&corev1.Pod{Status: Compute(in)}, corev1.DisruptionTarget); c != nil {
		t.Errorf("unexpected condition %+v", c)
	}
}

// A termination message outlives its file, which is removed with the Pod's folder.
func TestTerminationMessageStays(t *testing.T) {
	in := with(instance("m", 0, observed.Exited, 1), ended(podstate.Finish))
	in.Messages["m0"] = "out of cheese"
	in.Pod.Status = Compute(in)
	in.Messages = nil
	if got := Compute(in).ContainerStatuses[0].State.Terminated.Message; got != "out of cheese" {
		t.Errorf("message %q after its file has gone", got)
	}
}

// The status of a created container shows its resources and its user.
func TestWhatAContainerWasGiven(t *testing.T) {
	amounts := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
	given := func(in *Input) { in.Pod.Spec.Containers[0].Resources = *amounts.DeepCopy() }
	who := func(in *Input) {
		in.Observed.Containers[0].User = &observed.User{UID: 1000, GID: 2000, SupplementalGroups: []int64{3000}}
	}
	in := with(given, instance("m", 0, observed.Running), who)
	got := Compute(in).ContainerStatuses[0]
	if got.Resources == nil || !reflect.DeepEqual(*got.Resources, amounts) || !reflect.DeepEqual(got.AllocatedResources,
		amounts.Requests) {
		t.Errorf("resources %+v, allocated %v", got.Resources, got.AllocatedResources)
	}
	want := &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1000, GID: 2000,
		SupplementalGroups: []int64{3000}}}
	if !reflect.DeepEqual(got.User, want) {
		t.Errorf("user %+v, want %+v", got.User, want)
	}
	got.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
	if cpu := in.Pod.Spec.Containers[0].Resources.Requests.Cpu(); cpu.MilliValue() != 250 {
		t.Error("the status shares its amounts with the spec")
	}
	if got := Compute(with(given, noSandbox)).ContainerStatuses[0]; got.Resources != nil || got.User != nil {
		t.Errorf("nothing is created yet and the container has resources %v, user %v", got.Resources, got.User)
	}
	got = Compute(with(instance("m", 0, observed.Running))).ContainerStatuses[0]
	if got.Resources == nil || got.AllocatedResources != nil || got.User != nil {
		t.Errorf("nothing asked for, nothing said: resources %v, allocated %v, user %v", got.Resources,
			got.AllocatedResources, got.User)
	}
}

// POD-124: a Pod whose containers are ready and whose gate is not, as the API's users read it.
func TestGateIsFalseAsRead(t *testing.T) {
	in := with(instance("m", 0, observed.Running), func(in *Input) {
		in.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		in.Pod.Status.Conditions = []corev1.PodCondition{
			{Type: "example.com/gate", Status: corev1.ConditionFalse},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastProbeTime: metav1.NewTime(now)},
		}
	})
	text, err := json.Marshal(Compute(in))
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Conditions        []map[string]any
		ContainerStatuses []map[string]any
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(read.Conditions, func(c map[string]any) bool { return c["type"] == "Ready" })
	if i < 0 {
		t.Fatalf("no condition Ready in %s", text)
	}
	ready := read.Conditions[i]
	probed, said := ready["lastProbeTime"]
	if ready["status"] != "False" || !said || probed != nil {
		t.Errorf("Ready is %v, want status False and lastProbeTime null", ready)
	}
	if moved, err := time.Parse(time.RFC3339, fmt.Sprint(ready["lastTransitionTime"])); err != nil ||
		!moved.Equal(now) {
		t.Errorf("lastTransitionTime %v, want that of now: %v", ready["lastTransitionTime"], err)
	}
	if c := read.ContainerStatuses[0]; c["ready"] != true || c["containerID"] != "containerd://m0" {
		t.Errorf("container ready %v with ID %v, want true and containerd://m0", c["ready"], c["containerID"])
	}
}
