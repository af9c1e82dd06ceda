package podfeed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/endpointslice"
	"sigs.k8s.io/randfill"

	"keelson.dev/kit/quota"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/podset"
)

var owner = claim.Owner{Namespace: "default", Name: "web", UID: "o"}

// tracking is the finalizer of a Job's Pods.
const tracking = "batch.kubernetes.io/job-tracking"

// anyPod returns a Pod with all kinds of things in it.
func anyPod(r *rand.Rand, fill *randfill.Filler, i int) *corev1.Pod {
	pod := &corev1.Pod{}
	fill.Fill(&pod.ObjectMeta)
	fill.Fill(&pod.Spec.Containers)
	fill.Fill(&pod.Spec.InitContainers)
	always := corev1.ContainerRestartPolicyAlways
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].RestartPolicy = []*corev1.ContainerRestartPolicy{nil, &always}[r.IntN(2)]
	}
	nameSome(r, pod.Spec.Containers)
	nameSome(r, pod.Spec.InitContainers)
	pod.Spec.Hostname, pod.Spec.Subdomain = []string{"", "h"}[r.IntN(2)], []string{"", "web"}[r.IntN(2)]
	fill.Fill(&pod.Status)
	pod.Namespace, pod.Name, pod.UID = "default", fmt.Sprint(i), types.UID(fmt.Sprint(i))
	pod.Labels = map[string]string{"app": []string{"web", "debug"}[r.IntN(2)], "v": "1"}
	pod.Annotations = map[string]string{corev1.PodDeletionCost: fmt.Sprint(r.IntN(3)), "other": "x",
		batchv1.JobCompletionIndexAnnotation: fmt.Sprint(r.IntN(9)), batchv1.JobIndexFailureCountAnnotation: "1",
		batchv1.JobIndexIgnoredFailureCountAnnotation: "2"}
	pod.Spec.NodeName = fmt.Sprint("n", r.IntN(2))
	pod.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning,
		corev1.PodFailed}[r.IntN(4)]
	if r.IntN(2) == 0 {
		pod.DeletionTimestamp = nil
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].RestartCount = r.Int32N(3)
	}
	pod.Finalizers = []string{"other", tracking}[:r.IntN(3)]
	pod.OwnerReferences, pod.Status.Conditions = nil, nil
	if r.IntN(4) > 0 {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "o", Kind: []string{"ReplicaSet", "Job"}[r.IntN(2)],
			Name: "web", Controller: &yes}}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.DisruptionTarget} {
		if r.IntN(2) == 0 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000+r.Int64N(20),
					0),
			})
		}
	}
	return pod
}

// nameSome gives some ports names that a Service may call.
func nameSome(r *rand.Rand, containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			containers[i].Ports[j].Name, containers[i].Ports[j].Protocol = []string{"", "http", "dns"}[r.IntN(3)],
				[]corev1.Protocol{"TCP", "UDP"}[r.IntN(2)]
		}
	}
}

// view is all that the controllers get to see of Pods.
func view(pods []*corev1.Pod) map[string]any {
	index, now := podset.NewIndex(), time.Unix(1_700_000_010, 0)
	last := index.Register(podset.WithFinalizer(tracking))
	changes := map[string]any{}
	for _, pod := range pods {
		change := index.Upsert(pod)
		// What makes controllers look, and what they write of a Pod.
		changes["wakes of "+pod.Name] = []any{pod.Namespace, pod.Labels, pod.DeletionTimestamp}
		changes["patches of "+pod.Name] = []string{string(claim.AdoptPatch(owner, pod)),
			string(claim.ReleasePatch(owner, pod))}
		changes["end of "+pod.Name] = endOf(pod)
		changes["endpoint of "+pod.Name] = []any{pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.NodeName,
			pod.Status.PodIP, pod.Status.PodIPs, called(pod)}
		changes["change of "+pod.Name] = []any{change.Before, change.After, change.Ended}
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	counts := index.Observe("o", podset.Spec{Selector: selector, Template: labels.Set{"app": "web"},
		MinReady: 5 * time.Second}, now)
	names := func(pods []*corev1.Pod) []string {
		var names []string
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
		return slices.Sorted(slices.Values(names))
	}
	seen := map[string]any{"unmatched": names(counts.Unmatched), "orphans": names(index.Orphans("default", selector)),
		"unfinished": index.Unfinished("o")}
	counts.Unmatched = nil
	seen["figures"] = counts
	for _, key := range []podset.Key{podset.Owner("o"), podset.Node("n0"), podset.Namespace("default")} {
		for figure := range last + 1 {
			seen[fmt.Sprint(key, figure)] = names(index.Pods(key, figure))
		}
	}
	for _, ranked := range index.Ranked("o", []types.UID{"o"}) {
		seen["rank of "+ranked.Name] = ranked
	}
	made := map[string]int{}
	for _, pod := range index.Made("o") {
		made[fmt.Sprint(pod)]++
	}
	seen["made"] = made
	maps.Copy(seen, changes)
	return seen
}

// called are the numbers of the ports that a Service finds by their names. POD-202: none of an init container.
func called(pod *corev1.Pod) []string {
	var found []string
	for _, name := range []string{"http", "dns"} {
		for _, protocol := range []corev1.Protocol{"TCP", "UDP"} {
			number, err := endpointslice.FindPort(pod, &corev1.ServicePort{Protocol: protocol,
				TargetPort: intstr.FromString(name)})
			found = append(found, fmt.Sprint(name, protocol, number, err == nil))
		}
	}
	return found
}

// endOf is what Jobs read of their Pods.
func endOf(pod *corev1.Pod) any {
	if controller := metav1.GetControllerOf(pod); controller == nil || controller.Kind != "Job" {
		return nil
	}
	end := []any{pod.Annotations[batchv1.JobCompletionIndexAnnotation],
		pod.Annotations[batchv1.JobIndexFailureCountAnnotation],
		pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation], pod.Status.Conditions}
	all := [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses}
	for _, statuses := range all {
		for _, status := range statuses {
			end = append(end, status.Name, status.RestartCount)
			if ended := status.State.Terminated; ended != nil {
				end = append(end, ended.ExitCode, ended.FinishedAt)
			}
		}
		end = append(end, "")
	}
	return end
}

// What the cache keeps of Pods is all that the controllers see of them.
func TestTrimmingChangesNothingThatIsSeen(t *testing.T) {
	for seed := range int64(200) {
		r, fill := rand.New(rand.NewPCG(uint64(seed), 6)), randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2)
		var whole, kept []*corev1.Pod
		for i := range 8 {
			pod := anyPod(r, fill, i)
			trimmed, err := Trim(pod.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			whole, kept = append(whole, pod), append(kept, trimmed.(*corev1.Pod))
		}
		if got, want := view(kept), view(whole); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: of what is kept\n%+v\nof all\n%+v", seed, got, want)
		}
	}
}

// A daemon Pod that is not bound yet keeps the node that it is meant for; nobody else's terms are kept.
func TestDaemonPodsKeepTheirNode(t *testing.T) {
	yes := true
	terms := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.
		NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}
	for _, c := range []struct {
		name, owner, node string
		affinity          *corev1.Affinity
		want              *corev1.NodeSelector
	}{
		{"meant for a node", "DaemonSet", "", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms}, PodAffinity: &corev1.PodAffinity{}}, terms},
		{"bound", "DaemonSet", "n1", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms}}, nil},
		{"of another kind", "ReplicaSet", "", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms}}, nil},
		{"without terms", "DaemonSet", "", &corev1.Affinity{}, nil},
		{"without affinity", "DaemonSet", "", nil, nil},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: c.node, Affinity: c.affinity}}
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: c.owner, UID: "o", Controller: &yes}}
		trimmed, err := Trim(pod)
		if err != nil {
			t.Fatal(err)
		}
		var kept *corev1.NodeSelector
		if affinity := trimmed.(*corev1.Pod).Spec.Affinity; affinity != nil {
			kept = affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			if affinity.PodAffinity != nil {
				t.Errorf("%s: terms about Pods are kept", c.name)
			}
		}
		if !reflect.DeepEqual(kept, c.want) {
			t.Errorf("%s: %v is kept, want %v", c.name, kept, c.want)
		}
	}
}

// Of a node only what places Pods and volumes is kept: its status is long and changes often.
func TestNodesKeepWhatPlacesPods(t *testing.T) {
	node := &corev1.Node{}
	randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2).Fill(node)
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, Labels: node.Labels,
		ResourceVersion: node.ResourceVersion}, Spec: corev1.NodeSpec{Taints: node.Spec.Taints,
		PodCIDR:  node.Spec.PodCIDR,
		PodCIDRs: node.Spec.PodCIDRs},
		Status: corev1.NodeStatus{VolumesInUse: node.Status.VolumesInUse, VolumesAttached: node.Status.VolumesAttached,
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: "MemoryPressure", Status: "True"}, {Type: "Ready",
		Status: "True", Reason: "Any", LastHeartbeatTime: metav1.Now()}}
	if trimmed, err := Trim(node); err != nil || !reflect.DeepEqual(trimmed, want) {
		t.Errorf("%+v, %v; want %+v", trimmed, err, want)
	}
}

// POD-232: what a Pod asks for altogether outlives the trimming, and is kept once for all that ask for the same.
func TestTrimKeepsWhatQuotasCount(t *testing.T) {
	amount := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	deadline, grace := int64(9), int64(30)
	far := corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"other"}}
	pod := func(init string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionGracePeriodSeconds: &grace}, Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amount(init)}}},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amount("1"),
				Limits: amount("3")}}},
			Overhead: amount("100m"), PriorityClassName: "high", ActiveDeadlineSeconds: &deadline,
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{far}}},
		}, Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	}
	a, b, c := trimPod(pod("2")), trimPod(pod("2")), trimPod(pod("4"))
	want := &corev1.ResourceRequirements{Requests: amount("2100m"), Limits: amount("3100m")}
	if !equality.Semantic.DeepEqual(a.Spec.Resources, want) {
		t.Errorf("kept %v, want %v", a.Spec.Resources, want)
	}
	if a.Spec.Resources != b.Spec.Resources || a.Spec.Resources == c.Spec.Resources {
		t.Error("what two ask for is the same in memory if and only if it is the same")
	}
	if got, want := quota.PodScopes(a), quota.PodScopes(pod("2")); got != want || a.DeletionGracePeriodSeconds == nil {
		t.Errorf("scopes %+v, want %+v", got, want)
	}
	if got := trimPod(&corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container,
		1)}}); got.Spec.Resources != nil {
		t.Errorf("a Pod that asks for nothing keeps %v", got.Spec.Resources)
	}
}

// Pods of one template share what is kept of their ports.
func TestPodsShareTheirPorts(t *testing.T) {
	kept := func(port int32) []corev1.Container {
		trimmed, err := Trim(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.
			ContainerPort{{Name: "shared", ContainerPort: port, Protocol: "TCP"}, {ContainerPort: 1}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return trimmed.(*corev1.Pod).Spec.Containers
	}
	one, same, other := kept(80), kept(80), kept(81)
	if &one[0] != &same[0] || &one[0] == &other[0] || len(one[0].Ports) != 1 || other[0].Ports[0].ContainerPort != 81 {
		t.Errorf("%p %+v, %p and %p", &one[0], one, &same[0], &other[0])
	}
}
