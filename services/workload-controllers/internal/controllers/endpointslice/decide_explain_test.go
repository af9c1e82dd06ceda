package endpointslice

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAccount(t *testing.T) {
	without := func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }
	since := func(p *corev1.Pod) {
		unready(p)
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(changed)
	}
	many := []*corev1.Pod{pod(9)}
	for i := 1; i <= 6; i++ {
		many = append(many, pod(i, unready))
	}
	for _, row := range []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		settled string
		want    []string
	}{
		{"all is well", service(), []*corev1.Pod{pod(1), pod(2)}, "2 of the 2 Pods that it selects take requests", nil},
		{"selects nothing", service(), nil, "0 of the 0 Pods that it selects take requests",
			[]string{"NoPods: a Pod with the labels app=web: it selects none"}},
		{"not ready since", service(), []*corev1.Pod{pod(1), pod(2, since)},
			"1 of the 2 Pods that it selects take requests",
			[]string{"NotReady: 1 Pod to be ready: p2 since 12:00:00"}},
		{"many", service(), many, "1 of the 7 Pods that it selects take requests",
			[]string{"NotReady: 6 Pods to be ready: p1, p2, p3, p4, p5 and 1 more"}},
		{"not ready ones are published", service(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }),
			[]*corev1.Pod{pod(1, unready)}, "1 of the 1 Pod that it selects take requests", nil},
		{"not in any slice", service(), []*corev1.Pod{pod(1, without), pod(2, without, on("")),
			pod(3, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), pod(4, on("gone")),
			pod(5, terminating)}, "0 of the 5 Pods that it selects take requests", []string{
			"NoAddress: 1 Pod to get an address: p1", "NotScheduled: 1 Pod to get a node: p2",
			"Ended: 1 Pod to be replaced, having ended: p3",
			"NoNode: the Node gone, which does not exist, for 1 Pod: p4",
			"Terminating: 1 Pod to go: p5 since 12:00:00"}},
		{"of the other family", service(func(s *corev1.Service) {
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
		}), []*corev1.Pod{pod(1)}, "0 of the 1 Pod that it selects take requests",
			[]string{"NoAddressOfFamily: 1 Pod to get an address of [IPv6]: p1"}},
		{"a port that nobody names", service(byName), []*corev1.Pod{pod(1),
			pod(2, func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{port("c", 80)} })},
			"2 of the 2 Pods that it selects take requests", []string{
				`UnknownPort: a TCP port named "named", where port 80 leads to, in 1 Pod: p1`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(row.service, row.pods...)
			in = after(in, Decide(in))
			a := account(in, Decide(in))
			var got []string
			for _, wait := range a.Waits {
				line := wait.Reason + ": " + wait.For
				if !wait.Since.IsZero() {
					line += " since " + wait.Since.UTC().Format("15:04:05")
				}
				if wait.Ends == "" {
					t.Errorf("%s: nothing ends it", wait.Reason)
				}
				got = append(got, line)
			}
			if a.Settled != row.settled || !slices.Equal(got, row.want) || len(a.Does) > 0 {
				t.Errorf("%q\n%q, want\n%q\n%q; does %v", a.Settled, got, row.settled, row.want, a.Does)
			}
		})
	}
	in := input(service(), pod(1))
	if does := account(in, Decide(in)).Does; !slices.Equal(does, []string{"creates 1 EndpointSlice"}) {
		t.Errorf("does %v", does)
	}
}

func TestLeaves(t *testing.T) {
	external := service()
	external.Spec.Type, external.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	for want, s := range map[string]*corev1.Service{
		"leaves it alone: it is another name for example.com and has no endpoints": external,
		"leaves it alone: it selects no Pods, so its endpoints are those of EndpointSlices that others write": service(
			func(s *corev1.Service) { s.Spec.Selector = nil }),
	} {
		if got := leaves(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLeavesSlice(t *testing.T) {
	const service, managed = discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy
	for _, row := range []struct {
		labels map[string]string
		want   string
	}{
		{map[string]string{managed: manager}, "leaves it alone: it is of no Service, having no label " + service},
		{map[string]string{service: "web"}, "leaves it to who made it, having no label " + managed +
			"; Service web has its endpoints too"},
		{map[string]string{service: "web", managed: "example.com"}, "leaves it to example.com, which its label " +
			managed + " names; Service web has its endpoints too"},
	} {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: row.labels}}
		if got := leavesSlice(slice); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
