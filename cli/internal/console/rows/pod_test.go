package rows

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)

// pod has one container c on a node, with a condition Ready of the status and one status of a container.
func pod(ready corev1.ConditionStatus, state corev1.ContainerState, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: state,
				Ready: ready == corev1.ConditionTrue}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

var running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// unbound takes the node away, and says why there is none.
func unbound(conditions ...corev1.PodCondition) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions}
	}
}

func TestWhyAPodWaits(t *testing.T) {
	init := func(state corev1.ContainerState) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", State: state}}
		}
	}
	for name, row := range map[string]struct {
		p     *corev1.Pod
		state string
		tone  Tone
		waits string
	}{
		"runs": {pod(corev1.ConditionTrue, running), "Running", Good, ""},
		"no node fits": {pod(corev1.ConditionFalse, running, unbound(corev1.PodCondition{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"})),
			"Pending", Bad, "Unschedulable: 0/1 nodes are available"},
		"new": {pod(corev1.ConditionFalse, running, unbound()), "Pending", Busy, "waits for the scheduler"},
		// POD-030
		"gated": {pod(corev1.ConditionFalse, running, unbound(), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}, {Name: "c"}}
		}), "Pending", Busy, "waits for its scheduling gates to be removed: a/b, c"},
		"bound": {pod(corev1.ConditionFalse, running, func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{
				Phase: corev1.PodPending}
		}), "Pending", Busy, "its node has not started its containers yet"},
		"created": {pod(corev1.ConditionFalse, waiting("ContainerCreating", "")), "Running", Busy,
			"container c: ContainerCreating"},
		"no image": {pod(corev1.ConditionFalse, waiting("ImagePullBackOff", "not found")), "Running", Bad,
			"container c: ImagePullBackOff: not found"},
		"waits for nothing known": {pod(corev1.ConditionFalse, waiting("", "")), "Running", Busy, "container c: waits"},
		"crashed": {pod(corev1.ConditionFalse, ended(3, "Error")), "Running", Bad,
			"container c: ended with status 3 (Error)"},
		"one is done": {pod(corev1.ConditionFalse, ended(0, "Completed")), "Running", Busy, "not ready"},
		"an init container runs": {pod(corev1.ConditionFalse, waiting("PodInitializing", ""), init(running)), "Running",
			Busy, "init container i: runs"},
		"an init container fails": {pod(corev1.ConditionFalse, waiting("PodInitializing", ""),
			init(waiting("CrashLoopBackOff", ""))), "Running", Bad, "init container i: CrashLoopBackOff"},
		"an init container is done": {pod(corev1.ConditionTrue, running, init(ended(0, "Completed"))), "Running",
			Good, ""},
		"a sidecar runs": {pod(corev1.ConditionTrue, running, init(running), func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}), "Running", Good, ""},
		"the second fails, the first is made": {pod(corev1.ConditionFalse, waiting("ContainerCreating", ""),
			func(p *corev1.Pod) {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "d",
					State: waiting("ErrImagePull", "")})
			}), "Running", Bad, "container d: ErrImagePull"},
		"not ready": {pod(corev1.ConditionFalse, running, func(p *corev1.Pod) {
			p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = "ContainersNotReady", "unready: [c]"
		}), "Running", Busy, "ContainersNotReady: unready: [c]"},
		"succeeded": {pod(corev1.ConditionFalse, ended(0, ""), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
		}), "Succeeded", Idle, ""},
		"failed": {pod(corev1.ConditionFalse, ended(1, "Error"), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
		}), "Failed", Bad, "container c ended with status 1 (Error)"},
		"evicted": {pod(corev1.ConditionFalse, ended(137, ""), func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}), "Failed", Bad, "Evicted: low on memory"},
		"being deleted": {pod(corev1.ConditionTrue, running, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: now}
		}), "Terminating", Busy, "being deleted, waits for its containers to end"},
		"held": {pod(corev1.ConditionTrue, running, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"example.com/hold"}
		}), "Terminating", Busy, "being deleted, waits for its finalizers: example.com/hold"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfPod(row.p); got.State != row.state || got.Tone != row.tone || got.Waits != row.waits {
				t.Errorf("%s, %s, %q; want %s, %s, %q", got.State, got.Tone, got.Waits, row.state, row.tone, row.waits)
			}
		})
	}
}

// A Pod's row counts what is ready and what was restarted, and names the containers that have logs.
func TestContainersOfAPod(t *testing.T) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", CreationTimestamp: metav1.NewTime(now)},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "i"},
				{Name: "s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			Containers: []corev1.Container{{Name: "c"}, {Name: "d"}},
			EphemeralContainers: []corev1.EphemeralContainer{{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}},
		},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", Ready: true, RestartCount: 1},
				{Name: "s", Ready: true}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "d", Ready: true, RestartCount: 2}, {Name: "c"}},
		}}
	got := OfPod(p)
	if got.Ready != 2 || got.Containers != 3 || got.Restarts != 3 || !got.Created.Equal(now) ||
		!reflect.DeepEqual(got.Logs, []string{"i", "s", "c", "d", "e"}) {
		t.Errorf("got %+v", got)
	}
}

func TestOwner(t *testing.T) {
	for name, row := range map[string]struct {
		kind, owner, hash string
		want              *Owner
	}{
		"none":                             {"", "", "", nil},
		"a Job":                            {"Job", "pi", "", &Owner{"Job", "pi"}},
		"a Deployment":                     {"ReplicaSet", "web-7d9", "7d9", &Owner{"Deployment", "web"}},
		"a ReplicaSet of its own":          {"ReplicaSet", "web-7d9", "", &Owner{"ReplicaSet", "web-7d9"}},
		"a ReplicaSet whose name is free":  {"ReplicaSet", "web", "7d9", &Owner{"ReplicaSet", "web"}},
		"a StatefulSet with a label of it": {"StatefulSet", "web-7d9", "7d9", &Owner{"StatefulSet", "web-7d9"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			if row.hash != "" {
				p.Labels = map[string]string{"pod-template-hash": row.hash}
			}
			if row.kind != "" {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x"},
					{Kind: row.kind, Name: row.owner, Controller: new(true)}}
			}
			if got := OfPod(p).Owner; !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestNode(t *testing.T) {
	node := func(ready corev1.ConditionStatus, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: ready, Reason: "R", Message: "m"}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
				corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "h"},
				{Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
				{Type: corev1.NodeInternalIP, Address: "2001:db8::1"}},
		}}
		for _, f := range change {
			f(n)
		}
		return n
	}
	pressed := func(n *corev1.Node) {
		n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue,
			Message: "full"}
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, row := range map[string]struct {
		n        *corev1.Node
		state    string
		tone     Tone
		problems []string
	}{
		"ready":     {node(corev1.ConditionTrue), "ready", Good, nil},
		"not ready": {node(corev1.ConditionFalse), "not ready", Bad, []string{"R: m"}},
		"silent":    {node(corev1.ConditionUnknown), "does not report", Bad, []string{"R: m"}},
		"new":       {&corev1.Node{}, "has not reported yet", Busy, nil},
		"full":      {node(corev1.ConditionTrue, pressed), "ready", Bad, []string{"DiskPressure: full"}},
		"cordoned":  {node(corev1.ConditionTrue, cordoned), "ready, takes no new Pods", Idle, nil},
		"cordoned and silent": {node(corev1.ConditionUnknown, cordoned), "does not report, takes no new Pods", Bad,
			[]string{"R: m"}},
		"being deleted, ready": {node(corev1.ConditionTrue, func(n *corev1.Node) {
			n.DeletionTimestamp = &metav1.Time{}
		}), "is being deleted", Busy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := OfNode(row.n)
			if got.State != row.state || got.Tone != row.tone || !reflect.DeepEqual(got.Problems, row.problems) {
				t.Errorf("%s, %s, %q; want %s, %s, %q", got.State, got.Tone, got.Problems, row.state, row.tone,
					row.problems)
			}
		})
	}
	got := OfNode(node(corev1.ConditionTrue, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}
	}))
	if got.CPU != "2" || got.Memory != "4Gi" || got.MostPods != 110 || got.Address != "192.0.2.1" ||
		!reflect.DeepEqual(got.Taints, []string{"a=b:NoSchedule", "c:NoExecute"}) {
		t.Errorf("got %+v", got)
	}
}

func TestEvent(t *testing.T) {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}, Type: "Warning", Reason: "BackOff",
		Message: strings.Repeat("x", 2*longest), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p"},
		Source: corev1.EventSource{Component: "kubelet"}}
	got := OfEvent(e, now)
	want := Event{Namespace: "n", At: now, Count: 1, Tone: Bad, Type: "Warning", Reason: "BackOff", Kind: "Pod",
		Name: "p", Message: strings.Repeat("x", longest) + "…", By: "kubelet"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	e.Type, e.Count, e.Series, e.ReportingController = "Normal", 2, &corev1.EventSeries{Count: 7}, "nodeagent"
	if got := OfEvent(e, now); got.Tone != Idle || got.Count != 7 || got.By != "nodeagent" {
		t.Errorf("got %+v", got)
	}
}

// A row has nothing of what users write credentials into.
func TestRowsHaveNoCredentials(t *testing.T) {
	const credential = "hunter2"
	p := pod(corev1.ConditionTrue, running)
	p.Labels, p.Annotations = map[string]string{"a": credential}, map[string]string{"a": credential}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: credential}}
	p.Spec.Containers[0].Args, p.Spec.Containers[0].Command = []string{credential}, []string{credential}
	d := deployment(3, 3, 3)
	d.Annotations, d.Spec.Template.Spec = p.Annotations, p.Spec
	text, err := json.Marshal([]any{OfPod(p), Deployment(d)})
	if err != nil || strings.Contains(string(text), credential) {
		t.Errorf("%s, %v", text, err)
	}
}
