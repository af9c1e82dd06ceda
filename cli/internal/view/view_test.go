package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/systemd"
	"keelson.dev/cli/internal/unit"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func node(name string, ready corev1.ConditionStatus, message string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready,
			Message: message}}},
	}
}

func TestSummarize(t *testing.T) {
	pods := []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "a"}}, {Spec: corev1.PodSpec{NodeName: "a"}}, {}}
	got := summarize([]corev1.Node{node("a", "True", "is fine"), node("b", "False", "no runtime"),
		{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}, pods)
	want := []Node{{"a", "True", "", 2}, {"b", "False", "no runtime", 0}, {"c", "Unknown", "", 0}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func exampleStatus() Status {
	return Status{
		DataDir: "/d", Server: "https://127.0.0.1:6443",
		Daemons: []Daemon{
			{Name: "scheduler", State: stateRunning, PID: 42, Started: now.Add(-time.Minute), Version: "v1",
				Status: "127.0.0.1:1", Errors: []Failure{{"bind", "refused", now.Add(-40 * time.Second), 2}}},
			{Name: "apiserver", State: stateSilent, PID: 41, Started: now.Add(-time.Minute), Problem: "no route"},
			{Name: "podgc", State: stateEnded},
		},
		Leaders: []Leader{{Lease: "scheduler.default-scheduler", Daemon: "scheduler", Holder: "h",
			Since: now.Add(-time.Second)}},
		Nodes:   []Node{{"node-1", "True", "", 3}},
		Problem: "listing the nodes: refused",
	}
}

// Text that a user wrote into an event, a message or a condition is printed on its own line and cannot control the
// terminal.
func TestHostileMessages(t *testing.T) {
	const hostile = "done\x1b[2J\r\u202e\nEvents:\n  12:00:00  Normal Healthy: all is well"
	const shown = `done\u001b[2J\u000d\u202e\u000aEvents:\u000a  12:00:00  Normal Healthy: all is well`
	account := Account{
		Pod: &corev1.Pod{},
		Views: []DaemonView{
			{Daemon: "scheduler", Summary: hostile, Facts: []*introspectionv1.Fact{{Message: hostile}}},
		},
		Events: []corev1.Event{{Type: "Normal", Reason: "Killing", Message: hostile}},
	}
	account.Pod.Status.Conditions = []corev1.PodCondition{{Type: "x/y", Status: "False", Message: hostile}}
	account.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: hostile}}}}
	status := exampleStatus()
	status.Nodes[0].Reason, status.Daemons[0].Errors[0].Message = hostile, hostile
	var out bytes.Buffer
	account.Write(&out)
	status.WriteTable(&out, now)
	if got := strings.Count(out.String(), shown); got != 7 || strings.ContainsAny(out.String(), "\x1b\r\u202e") {
		t.Errorf("shown %d times in %q", got, out.String())
	}
}

func TestWriteTable(t *testing.T) {
	var out bytes.Buffer
	exampleStatus().WriteTable(&out, now)
	for _, want := range []string{
		"scheduler   running                    42    1m0s   v1        127.0.0.1:1",
		"podgc       ended                      -     -      -         -",
		"scheduler.default-scheduler   h        1s", "node-1   True    3",
		"scheduler: last error of bind, 40s ago (2 in all): refused\n", "apiserver does not answer: no route\n",
		"listing the nodes: refused", "server https://127.0.0.1:6443, data in /d",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The line names the command that made the mesh on this machine.
func TestAMeshThatIsDownIsOneLine(t *testing.T) {
	for maker, recorded := range map[string]*state.State{
		"keel up":   {},
		"keel init": {Units: true},
		"keel join": {Units: true, ControlPlane: true},
	} {
		var out bytes.Buffer
		m := &mesh.Mesh{Layout: plan.Layout{Dir: "/data"}, State: recorded,
			Units: &systemd.Units{Folder: unit.Folder(t.TempDir())}}
		Collect(t.Context(), m).WriteTable(&out, now)
		if got := out.String(); got != "the mesh is down: "+maker+" starts it (data in /data)\n" {
			t.Errorf("%s: got %q", maker, got)
		}
		if _, _, problem := Daemons(t.Context(), m); problem != "the mesh is down: "+maker+" starts it" {
			t.Errorf("%s: the daemons: %q", maker, problem)
		}
	}
}

func TestWriteJSONIsForPrograms(t *testing.T) {
	var out bytes.Buffer
	if err := exampleStatus().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	daemon := got["daemons"].([]any)[0].(map[string]any)
	if daemon["pid"] != float64(42) || daemon["name"] != "scheduler" ||
		got["leaders"].([]any)[0].(map[string]any)["lease"] != "scheduler.default-scheduler" {
		t.Errorf("got %v", got)
	}
}

func TestAccountOfAPodThatIsNotReady(t *testing.T) {
	account := Account{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{
					{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
					{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
				},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 2, State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 20s"},
				}}},
			},
		},
		Events: []corev1.Event{{Type: "Warning", Reason: "BackOff", Message: "restarting"}},
		Views: []DaemonView{{Daemon: "nodeagent-node-1", Summary: "waits", Facts: []*introspectionv1.Fact{
			{Time: timestamppb.New(now), Reason: "Started", Message: "container c"},
		}}},
	}
	var out bytes.Buffer
	account.Write(&out)
	for _, want := range []string{
		"Pod default/p: Running, node node-1\n", "  Ready is False (ContainersNotReady)\n",
		"  container c: waiting (CrashLoopBackOff: back-off 20s), restarted 2 times\n", "nodeagent-node-1: waits\n",
		"Started: container c\n", "Warning BackOff: restarting\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "PodScheduled") {
		t.Error("a condition that holds up nothing is shown")
	}
}

// The API provides what a daemon does not keep: the scheduler knows nothing about a Pod that has its node.
func TestWhatDaemonsDoNotKnow(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 3, 0, time.Local)
	bound := func(p *corev1.Pod) {
		p.Spec.NodeName = "node-1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(at)}}
	}
	for name, test := range map[string]struct {
		change           func(*corev1.Pod)
		events           []corev1.Event
		scheduler, agent string
	}{
		"bound": {bound, []corev1.Event{{Reason: "Pulled", ReportingController: "nodeagent"},
			{Reason: "Scheduled", ReportingController: "default-scheduler"}},
			"bound to node-1 at 2026-11-21 12:00:03 by default-scheduler", "has not seen the Pod yet"},
		"bound, an Event of the old kind": {bound,
			[]corev1.Event{{Reason: "Scheduled", Source: corev1.EventSource{Component: "default-scheduler"}}},
			"bound to node-1 at 2026-11-21 12:00:03 by default-scheduler", "has not seen the Pod yet"},
		"bound, the Event has expired": {bound, nil, "bound to node-1 at 2026-11-21 12:00:03",
			"has not seen the Pod yet"},
		"bound by its creator": {func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }, nil, "bound to node-1",
			"has not seen the Pod yet"},
		"ended on its node": {func(p *corev1.Pod) { bound(p); p.Status.Phase = corev1.PodSucceeded }, nil,
			"bound to node-1 at 2026-11-21 12:00:03", "has nothing left to do for a Pod that has ended"},
		"failed before it was placed": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, nil,
			"does not place a Pod that has ended", "has nothing left to do for a Pod that has ended"},
		"being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }, nil,
			"does not place a Pod that is being deleted", "has not seen the Pod yet"},
		"another scheduler's": {func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }, nil,
			`has no profile named "mine", or has not seen the Pod yet`, "has not seen the Pod yet"},
	} {
		t.Run(name, func(t *testing.T) {
			account := Account{Pod: &corev1.Pod{}, Events: test.events}
			test.change(account.Pod)
			if got := account.unknownToScheduler(); got != test.scheduler {
				t.Errorf("scheduler: %q, want %q", got, test.scheduler)
			}
			if got := account.unknownToAgent(); got != test.agent {
				t.Errorf("nodeagent: %q, want %q", got, test.agent)
			}
		})
	}
}

// A fact that holds at no one moment, for example what speaks against a node, has no time.
func TestFactsWithoutATime(t *testing.T) {
	account := Account{Pod: &corev1.Pod{}, Views: []DaemonView{{Daemon: "scheduler", Summary: "waits",
		Facts: []*introspectionv1.Fact{
			{Reason: "Node", Message: "n: Insufficient cpu"},
			{Time: timestamppb.New(time.Time{}), Reason: "Node", Message: "m: Insufficient cpu"},
			{Time: timestamppb.New(time.Date(2026, 11, 21, 0, 0, 0, 0, time.Local)), Reason: "Queued",
				Message: "at midnight"},
		}}}}
	var out bytes.Buffer
	account.Write(&out)
	want := "scheduler: waits\n            Node: n: Insufficient cpu\n            Node: m: Insufficient cpu\n  " +
		"00:00:00  Queued: at midnight\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestLastSeen(t *testing.T) {
	event := corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now)}}
	if !LastSeen(event).Equal(now) {
		t.Error("the creation is the last resort")
	}
	event.EventTime = metav1.NewMicroTime(now.Add(time.Second))
	if !LastSeen(event).Equal(now.Add(time.Second)) {
		t.Error("an Event of the new kind has its own time")
	}
	event.LastTimestamp = metav1.NewTime(now.Add(2 * time.Second))
	if !LastSeen(event).Equal(now.Add(2 * time.Second)) {
		t.Error("a series counts by its last time")
	}
}

func TestAccountOfAWorkload(t *testing.T) {
	object := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web",
		CreationTimestamp: metav1.NewTime(now)}}
	w := Workload{Kind: "ReplicationController", Object: object,
		Events: []corev1.Event{{Type: "Warning", Reason: "FailedCreate", Message: "forbidden"}},
		Views: []DaemonView{{Daemon: "workload-controllers", Summary: "waits for 1 Pod to be ready",
			Facts: []*introspectionv1.Fact{{Reason: "NotReady", Message: "it ends when"}}}}}
	for want, change := range map[string]func(){
		"ReplicationController default/web: made at ":         func() {},
		"workload-controllers: waits for 1 Pod to be ready\n": func() {},
		"  NotReady: it ends when\n":                          func() {},
		"Warning FailedCreate: forbidden\n":                   func() {},
		"ReplicationController default/web: being deleted since ": func() {
			object.DeletionTimestamp = &metav1.Time{
				Time: now}
		},
	} {
		var out bytes.Buffer
		object.DeletionTimestamp = nil
		change()
		if w.Write(&out); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// An object without a namespace is told by its name alone.
func TestAccountOfANode(t *testing.T) {
	var out bytes.Buffer
	Workload{Kind: "Node", Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}.Write(&out)
	if got := out.String(); !strings.HasPrefix(got, "Node n: made at ") {
		t.Errorf("got %q", got)
	}
}
