package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// POD-130, POD-131, POD-127: the message names the containers that are waited for, and only those.
func TestWhatIsWaitedFor(t *testing.T) {
	first, second := initC(corev1.Container{Name: "i"}), initC(corev1.Container{Name: "j"})
	up := instance("m", 0, observed.Running)
	unready := func(in *Input) { in.Pod.Spec.InitContainers[0].ReadinessProbe = &corev1.Probe{} }
	const initialized, containers, start = corev1.PodInitialized, corev1.ContainersReady,
		corev1.PodReadyToStartContainers
	for _, row := range []struct {
		name    string
		input   []func(*Input)
		kind    corev1.PodConditionType
		status  corev1.ConditionStatus
		message string
	}{
		{"neither has begun", []func(*Input){first, second}, initialized, "False",
			"containers with incomplete status: [i j]"},
		{"the first is done", []func(*Input){first, second, instance("i", 0, observed.Exited, 0)}, initialized, "False",
			"containers with incomplete status: [j]"},
		{"the first is done, the second runs", []func(*Input){first, second, instance("i", 0, observed.Exited, 0),
			instance("j", 0, observed.Running)}, initialized, "False", "containers with incomplete status: [j]"},
		{"both are done", []func(*Input){first, second, instance("i", 0, observed.Exited, 0),
			instance("j", 0, observed.Exited, 0)}, initialized, "True", ""},
		{"the first failed", []func(*Input){first, second, instance("i", 0, observed.Exited, 1)}, initialized, "False",
			"containers with incomplete status: [i j]"},
		{"a sidecar has not started", []func(*Input){sidecar("s")}, initialized, "False",
			"containers with incomplete status: [s]"},
		{"a sidecar runs and the next one is waited for", []func(*Input){sidecar("s"), second,
			instance("s", 0, observed.Running)}, initialized, "False", "containers with incomplete status: [j]"},
		{"an init container is done and the sidecar is waited for", []func(*Input){first, sidecar("s"),
			instance("i", 0, observed.Exited, 0)}, initialized, "False", "containers with incomplete status: [s]"},
		{"a sidecar behind a sidecar", []func(*Input){sidecar("s"), sidecar("r"), instance("s", 0, observed.Running)},
			initialized, "False", "containers with incomplete status: [r]"},
		{"a sidecar that the API has only heard the end of", []func(*Input){sidecar("s"), func(in *Input) {
			in.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s", State: terminated("s0", 1)}}
		}}, initialized, "False", "containers with incomplete status: [s]"},
		{"a main container has begun", []func(*Input){first, up}, initialized, "True", ""},

		{"a sidecar and a container that are ready", []func(*Input){sidecar("s"), instance("s", 0, observed.Running),
			up}, containers, "True", ""},
		{"neither is ready", []func(*Input){sidecar("s")}, containers, "False",
			"containers with unready status: [s m]"},
		{"the sidecar is not", []func(*Input){sidecar("s"), unready, instance("s", 0, observed.Running), up},
			containers, "False", "containers with unready status: [s]"},
		{"an init container does not count", []func(*Input){first, up}, containers, "True", ""},
		{"the second of two is not", []func(*Input){up, func(in *Input) {
			in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, corev1.Container{Name: "n"})
		}}, containers, "False", "containers with unready status: [n]"},

		{"a sandbox without an address", []func(*Input){func(in *Input) { in.Observed.Sandboxes[0].IPs = nil }}, start,
			"False", ""},
		{"a sandbox of the host's network", []func(*Input){func(in *Input) {
			in.Observed.Sandboxes[0].IPs, in.Pod.Spec.HostNetwork = nil, true
		}}, start, "True", ""},
		{"no sandbox on the host's network", []func(*Input){noSandbox, func(in *Input) {
			in.Pod.Spec.HostNetwork = true
		}}, start, "False", ""},
	} {
		c := podview.Condition(&corev1.Pod{Status: Compute(with(row.input...))}, row.kind)
		if c == nil || c.Status != row.status || c.Message != row.message {
			t.Errorf("%s: %s is %+v, want %s %q", row.name, row.kind, c, row.status, row.message)
		}
	}
}

// POD-119, POD-121: the message names every gate that is not true, and its status.
func TestGatesAreNamed(t *testing.T) {
	in := with(instance("m", 0, observed.Running), func(in *Input) {
		for _, gate := range []corev1.PodConditionType{"example.com/a", "example.com/b", "example.com/c"} {
			in.Pod.Spec.ReadinessGates = append(in.Pod.Spec.ReadinessGates,
				corev1.PodReadinessGate{ConditionType: gate})
		}
		in.Pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/a", Status: "Unknown"},
			{Type: "example.com/c", Status: "True"}}
	})
	out := Compute(in)
	ready := podview.Condition(&corev1.Pod{Status: out}, corev1.PodReady)
	if want := `the status of pod readiness gate "example.com/a" is not "True", but Unknown, corresponding condition of ` +
		`pod readiness gate "example.com/b" does not exist.`; ready.Message != want {
		t.Errorf("message %q, want %q", ready.Message, want)
	}
	var kinds []corev1.PodConditionType
	for _, c := range out.Conditions {
		kinds = append(kinds, c.Type)
	}
	if len(kinds) != 7 || kinds[5] != "example.com/a" || kinds[6] != "example.com/c" {
		t.Errorf("conditions %v, want the five of the nodeagent and those of others behind them", kinds)
	}
}

// A Pod has the addresses of its sandbox while that exists, none before, and keeps its addresses when it has ended.
func TestAddressesOfAnEnd(t *testing.T) {
	had := func(in *Input) {
		in.Pod.Status.PodIP, in.Pod.Status.PodIPs = "10.9.9.9", []corev1.PodIP{{IP: "10.9.9.9"}}
		in.Pod.Status.HostIP, in.Pod.Status.HostIPs = "10.8.8.8", []corev1.HostIP{{IP: "10.8.8.8"}, {IP: "10.8.8.9"}}
	}
	unready := func(in *Input) { in.Observed.Sandboxes[0].Ready = false }
	onHost := func(in *Input) { in.Pod.Spec.HostNetwork = true }
	stopping := plan(func(p *podstate.Plan) { p.Goal = podstate.Terminate })
	for _, row := range []struct {
		name  string
		input []func(*Input)
		ip    string
		ips   int
	}{
		{"a sandbox", []func(*Input){had}, "10.1.0.5", 2},
		{"a sandbox on the host's network", []func(*Input){had, onHost}, "10.0.0.1", 1},
		{"no sandbox yet", []func(*Input){had, noSandbox}, "", 0},
		{"a sandbox that is gone and comes again", []func(*Input){had, unready}, "", 0},
		{"a sandbox that is gone on the host's network", []func(*Input){had, unready, onHost}, "", 0},
		{"a sandbox that is gone for good", []func(*Input){had, unready, stopping}, "10.9.9.9", 1},
		{"no sandbox any more", []func(*Input){had, noSandbox, stopping}, "10.9.9.9", 1},
		{"ending, and the sandbox stands", []func(*Input){had, stopping}, "10.1.0.5", 2},
	} {
		s := Compute(with(row.input...))
		if s.PodIP != row.ip || len(s.PodIPs) != row.ips || row.ips > 0 && s.PodIPs[0].IP != row.ip {
			t.Errorf("%s: %q of %v, want %q of %d", row.name, s.PodIP, s.PodIPs, row.ip, row.ips)
		}
		if s.HostIP != "10.0.0.1" || len(s.HostIPs) != 1 || s.HostIPs[0].IP != "10.0.0.1" {
			t.Errorf("%s: the host is %q of %v", row.name, s.HostIP, s.HostIPs)
		}
	}
}

// A reason is set only together with what it explains, and the API's reason of a Pod that has ended stays.
func TestReason(t *testing.T) {
	evicted := plan(func(p *podstate.Plan) { p.Outcome = &podstate.Outcome{Reason: "Evicted", Message: "full"} })
	had := func(in *Input) { in.Pod.Status.Reason, in.Pod.Status.Message = "Old", "old" }
	for _, row := range []struct {
		name   string
		input  []func(*Input)
		reason string
		phase  corev1.PodPhase
	}{
		{"nothing is wrong any more", []func(*Input){had, instance("m", 0, observed.Running)}, "", corev1.PodRunning},
		{"evicted, and it still runs", []func(*Input){evicted, instance("m", 0, observed.Running),
			plan(func(p *podstate.Plan) { p.Goal = podstate.Finish })}, "", corev1.PodRunning},
		{"evicted", []func(*Input){evicted, instance("m", 0, observed.Exited, 0), ended(podstate.Finish)}, "Evicted",
			corev1.PodFailed},
		{"it has ended before", []func(*Input){had, evicted, instance("m", 0, observed.Exited, 0),
			ended(podstate.Finish), func(in *Input) { in.Pod.Status.Phase = corev1.PodSucceeded }}, "Old",
			corev1.PodSucceeded},
	} {
		s := Compute(with(row.input...))
		if s.Reason != row.reason || (s.Message != "") != (row.reason != "") || s.Phase != row.phase {
			t.Errorf("%s: %s for %q, %q; want %s for %q", row.name, s.Phase, s.Reason, s.Message, row.phase, row.reason)
		}
	}
	if s := Compute(with()); s.ObservedGeneration != 3 || s.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("of generation %d, %s", s.ObservedGeneration, s.QOSClass)
	}
}
