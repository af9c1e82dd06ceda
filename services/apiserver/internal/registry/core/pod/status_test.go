package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// POD-071 SAF-083: the status changes alone, and not the class of service.
func TestPrepareForStatusUpdate(t *testing.T) {
	old := nginx()
	old.OwnerReferences = []metav1.OwnerReference{{Name: "rs"}}
	p := old.DeepCopy()
	p.Spec.NodeName, p.Generation, p.OwnerReferences = "other", 7, nil
	p.Status.QOSClass, p.Status.PodIP, p.Status.HostIP = corev1.PodQOSGuaranteed, "10.0.0.1", "192.168.0.1"
	statusWrites.PrepareForUpdate(p, old)
	if p.Spec.NodeName != "node-1" || p.Generation != 1 || len(p.OwnerReferences) != 1 ||
		p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("more than the status changed: %+v", p)
	}
	if len(p.Status.PodIPs) != 1 || p.Status.PodIPs[0].IP != "10.0.0.1" || len(p.Status.HostIPs) != 1 ||
		p.Status.HostIPs[0].IP != "192.168.0.1" {
		t.Errorf("addresses %v and %v", p.Status.PodIPs, p.Status.HostIPs)
	}
}

func TestAgreeOnIPs(t *testing.T) {
	rows := []struct {
		name string
		ip   string
		ips  []string
		want []string
	}{
		{"neither", "", nil, nil},
		{"POD-060 one alone", "10.0.0.1", nil, []string{"10.0.0.1"}},
		{"POD-060 the list alone", "", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "fd00::1"}},
		{"both alike", "10.0.0.1", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "fd00::1"}},
		{"both different", "10.0.0.2", []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.2"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			status := corev1.PodStatus{PodIP: row.ip, HostIP: row.ip}
			for _, ip := range row.ips {
				status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
				status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip})
			}
			agreeOnIPs(&status)
			var want corev1.PodStatus
			for i, ip := range row.want {
				if i == 0 {
					want.PodIP, want.HostIP = ip, ip
				}
				want.PodIPs = append(want.PodIPs, corev1.PodIP{IP: ip})
				want.HostIPs = append(want.HostIPs, corev1.HostIP{IP: ip})
			}
			if !apiequality.Semantic.DeepEqual(status, want) {
				t.Errorf("got %+v, want %+v", status, want)
			}
		})
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	ips := func(ips ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, ip := range ips {
				p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
				p.Status.HostIPs = append(p.Status.HostIPs, corev1.HostIP{IP: ip})
			}
		}
	}
	nothing := func(*corev1.Pod) {}
	rows := []struct {
		name        string
		old, change func(*corev1.Pod)
		want        []string
	}{
		{"POD-072 succeeded", nothing, phase(corev1.PodSucceeded), nil},
		{"POD-072 POD-077 unknown", nothing, phase(corev1.PodUnknown), nil},
		{
			"POD-072 another phase",
			nothing,
			phase("Paused"),
			[]string{
				`status.phase: Unsupported value: "Paused": supported values: "Failed", "Pending", "Running", "Succeeded", "Unknown"`,
			},
		},
		{"SAF-122 failed and running again", phase(corev1.PodFailed), phase(corev1.PodRunning),
			[]string{`status.phase: Forbidden: a Pod that has Failed may not become Running`}},
		{"SAF-122 succeeded and failed", phase(corev1.PodSucceeded), phase(corev1.PodFailed),
			[]string{`status.phase: Forbidden: a Pod that has Succeeded may not become Failed`}},
		{"SAF-122 failed as before", phase(corev1.PodFailed), phase(corev1.PodFailed), nil},
		{"POD-107 POD-122 a condition of somebody else", nothing, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "www.example.com/feature-1",
				Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionUnknown}}
		}, nil},
		{
			"POD-113 another condition status",
			nothing,
			func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: "a", Status: "Maybe"}} },
			[]string{
				`status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"`,
			},
		},
		{"a condition of no type", nothing, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Status: corev1.ConditionTrue, ObservedGeneration: -1}}
		}, []string{
			`status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to 0`,
			`status.conditions[0].type: Required value`}},
		{"SCH-049 a nominated node", nothing, func(p *corev1.Pod) { p.Status.NominatedNodeName = "node-2" }, nil},
		{
			"a malformed nominated node",
			nothing,
			func(p *corev1.Pod) { p.Status.NominatedNodeName = "A" },
			[]string{
				`status.nominatedNodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			},
		},
		{
			"POD-069 a mirror Pod no more",
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "a"} },
			func(p *corev1.Pod) { p.Annotations = nil },
			[]string{
				`metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or add mirror pod annotation`,
			},
		},
		{
			"POD-069 a mirror Pod from now on",
			nothing,
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "a"} },
			[]string{
				`metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or add mirror pod annotation`,
			},
		},
		{"POD-069 another mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "a"} },
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "b"} },
			[]string{`metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "b": field is immutable`}},
		{"an annotation", nothing, func(p *corev1.Pod) {
			p.Annotations = map[string]string{
				"example.com/network": "a"}
		}, nil},
		{"a negative generation", nothing, func(p *corev1.Pod) { p.Status.ObservedGeneration = -1 },
			[]string{`status.observedGeneration: Invalid value: -1: must be greater than or equal to 0`}},
		{"POD-060 an address of each family", nothing, ips("10.0.0.1", "fd00::1"), nil},
		{
			"POD-060 two of one family",
			nothing,
			ips("10.0.0.1", "10.0.0.2"),
			[]string{
				`status.hostIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family`,
				`status.podIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family`,
			},
		},
		{"no address", nothing, ips("x"), []string{
			`status.hostIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			`status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			old := nginx()
			row.old(old)
			p := old.DeepCopy()
			row.change(p)
			wantErrors(t, ValidateStatusUpdate(p, old), row.want...)
		})
	}
}

// SAF-122: a container that its Pod does not restart never runs again.
func TestValidateRestarts(t *testing.T) {
	const restarted = `status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state`
	rows := []struct {
		name   string
		policy corev1.RestartPolicy
		exit   int32
		want   []string
	}{
		{"never, ended well", corev1.RestartPolicyNever, 0, []string{restarted}},
		{"never, ended badly", corev1.RestartPolicyNever, 1, []string{restarted}},
		{"on failure, ended well", corev1.RestartPolicyOnFailure, 0, []string{restarted}},
		{"on failure, ended badly", corev1.RestartPolicyOnFailure, 1, nil},
		{"always, ended well", corev1.RestartPolicyAlways, 0, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: row.exit}}
			old := nginx()
			old.Spec.RestartPolicy = row.policy
			old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: ended}}
			p := old.DeepCopy()
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			wantErrors(t, ValidateStatusUpdate(p, old), row.want...)
		})
	}
}

// A container's own policy and rules go before the Pod's policy.
func TestValidateRestartsByOwnPolicy(t *testing.T) {
	never, onFailure := corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{42}}}}
	for name, row := range map[string]struct {
		policy corev1.RestartPolicy
		own    *corev1.ContainerRestartPolicy
		rules  []corev1.ContainerRestartRule
		exit   int32
		taken  bool
	}{
		"never, where the Pod says always":      {corev1.RestartPolicyAlways, &never, nil, 1, false},
		"on failure, where the Pod says never":  {corev1.RestartPolicyNever, &onFailure, nil, 1, true},
		"on failure, after a success":           {corev1.RestartPolicyAlways, &onFailure, nil, 0, false},
		"a rule, where the container is never":  {corev1.RestartPolicyNever, &never, rules, 42, true},
		"another exit code than that of a rule": {corev1.RestartPolicyAlways, &never, rules, 41, false},
	} {
		old := nginx()
		old.Spec.RestartPolicy = row.policy
		old.Spec.Containers[0].RestartPolicy, old.Spec.Containers[0].RestartPolicyRules = row.own, row.rules
		old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: row.exit}}}}
		p := old.DeepCopy()
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		if errs := ValidateStatusUpdate(p, old); (len(errs) == 0) != row.taken {
			t.Errorf("%s: %v, taken %v", name, errs.ToAggregate(), row.taken)
		}
	}
}

// A rule of any container may restart all of them, whatever their own policies say.
func TestValidateRestartsOfAll(t *testing.T) {
	for action, taken := range map[corev1.ContainerRestartRuleAction]bool{
		corev1.ContainerRestartRuleActionRestart:              false,
		corev1.ContainerRestartRuleActionRestartAllContainers: true,
	} {
		old := nginx()
		old.Spec.RestartPolicy = corev1.RestartPolicyNever
		old.Spec.Containers = append(old.Spec.Containers, corev1.Container{Name: "watcher", Image: "w",
			RestartPolicyRules: []corev1.ContainerRestartRule{{Action: action,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{42}}}}})
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		old.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: ended}}
		old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: ended}}
		p := old.DeepCopy()
		waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		p.Status.InitContainerStatuses[0].State, p.Status.ContainerStatuses[0].State = waits, waits
		if errs := ValidateStatusUpdate(p, old); (len(errs) == 0) != taken {
			t.Errorf("%s: %v, taken %v", action, errs.ToAggregate(), taken)
		}
	}
}

// Sidecars restart whatever the Pod's policy is; ordinary init containers follow it.
func TestValidateRestartsOfInitContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	old := nginx()
	old.Spec.RestartPolicy = corev1.RestartPolicyNever
	old.Spec.InitContainers = append(old.Spec.InitContainers, corev1.Container{Name: "sidecar", Image: "s",
		RestartPolicy: &always})
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	old.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: ended},
		{Name: "sidecar", State: ended}}
	p := old.DeepCopy()
	for i := range p.Status.InitContainerStatuses {
		p.Status.InitContainerStatuses[i].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	wantErrors(t, ValidateStatusUpdate(p, old),
		`status.initContainerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state`)
}
