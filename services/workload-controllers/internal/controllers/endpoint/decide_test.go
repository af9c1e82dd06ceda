package endpoint

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var changed = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func service(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid",
			Labels: map[string]string{"team": "a"}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, ClusterIP: "10.0.0.7",
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP",
				TargetPort: intstr.FromInt32(8080)}}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// pod returns one that is ready.
func pod(number int, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", number),
			UID: types.UID(fmt.Sprint("u", number))},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	p.Status.PodIP = fmt.Sprintf("10.1.%d.%d", number/250, number%250+1)
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}, {IP: fmt.Sprintf("fd00::%x", number+1)}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func unready(p *corev1.Pod)     { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: changed} }

// offers gives the Pod a port that Services may call "named".
func offers(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "named", ContainerPort: number,
			Protocol: "TCP"}}}}
	}
}

func summary(all []corev1.EndpointSubset) string {
	var lines []string
	for _, subset := range all {
		line := ""
		for _, port := range subset.Ports {
			line += fmt.Sprintf("%s:%d/%s ", port.Name, port.Port, port.Protocol)
		}
		for _, address := range subset.Addresses {
			line += fmt.Sprintf("%s=%s@%s%s ", address.IP, address.TargetRef.Name, *address.NodeName, address.Hostname)
		}
		for _, address := range subset.NotReadyAddresses {
			line += fmt.Sprintf("not %s=%s ", address.IP, address.TargetRef.Name)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestDecide(t *testing.T) {
	byName := func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("named") }
	for _, row := range []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		want    string
	}{
		{"no Pods", service(), nil, ""},
		{"sorted by address", service(), []*corev1.Pod{pod(2), pod(1)},
			"http:8080/TCP 10.1.0.2=p1@n1 10.1.0.3=p2@n1"},
		{"POD-141 POD-145 one that is not ready", service(), []*corev1.Pod{pod(2), pod(1, unready)},
			"http:8080/TCP 10.1.0.3=p2@n1 not 10.1.0.2=p1"},
		{"POD-160 POD-162 one that goes is shown, and not as ready", service(), []*corev1.Pod{pod(1, terminating)},
			"http:8080/TCP not 10.1.0.2=p1"},
		{"not ready ones are published", service(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }),
			[]*corev1.Pod{pod(1, unready), pod(2, terminating)}, "http:8080/TCP 10.1.0.2=p1@n1 10.1.0.3=p2@n1"},
		{"one that has ended", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
		})}, ""},
		{"one without an address", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "", nil
		})}, ""},
		{"the other family", service(func(s *corev1.Service) {
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		}), []*corev1.Pod{pod(1)}, "http:8080/TCP fd00::2=p1@n1"},
		{"the family of the cluster IP", service(func(s *corev1.Service) {
			s.Spec.IPFamilies, s.Spec.ClusterIP = nil, "fd01::1"
		}), []*corev1.Pod{pod(1)}, "http:8080/TCP fd00::2=p1@n1"},
		{"a Pod of another family alone", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "fd00::2", []corev1.PodIP{{IP: "fd00::2"}}
		})}, ""},
		{"a Pod with one address only", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.PodIPs = nil
		})}, "http:8080/TCP 10.1.0.2=p1@n1"},
		{"a named port with two numbers", service(byName), []*corev1.Pod{pod(1, offers(81)), pod(2, offers(80)),
			pod(3, offers(80))}, "http:80/TCP 10.1.0.3=p2@n1 10.1.0.4=p3@n1\nhttp:81/TCP 10.1.0.2=p1@n1"},
		{"a port that the Pod does not have", service(byName), []*corev1.Pod{pod(1)}, ""},
		{"POD-202 a port that an init container has", service(byName), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			offers(80)(p)
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
		})}, ""},
		{"SET-150 headless without ports", service(func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.Ports = "None", nil
		}), []*corev1.Pod{pod(1, func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "-h", "web" })},
			"10.1.0.2=p1@n1-h"},
		{"a host name below another Service", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Spec.Hostname, p.Spec.Subdomain = "-h", "other"
		})}, "http:8080/TCP 10.1.0.2=p1@n1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Service: row.service, Pods: row.pods, Changed: changed}
			plan := Decide(in)
			got := summary(plan.Create.Subsets)
			if got != row.want {
				t.Errorf("subsets\n%s, want\n%s", got, row.want)
			}
			_, headless := plan.Create.Labels["service.kubernetes.io/headless"]
			if plan.Create.Name != "web" || plan.Create.Namespace != "default" || plan.Create.Labels["team"] != "a" ||
				plan.Create.Labels["endpoints.kubernetes.io/managed-by"] != "endpoint-controller" ||
				headless != (row.service.Spec.ClusterIP == "None") ||
				plan.Create.Annotations["endpoints.kubernetes.io/last-change-trigger-time"] !=
					"2026-01-10T12:00:00Z" {
				t.Errorf("metadata %+v", plan.Create.ObjectMeta)
			}
			in.Endpoints, in.Changed = plan.Create, changed.Add(time.Hour)
			if again := Decide(in); again.Create != nil || again.Update != nil {
				t.Errorf("a second pass writes %+v", again)
			}
		})
	}
}

// What differs is written, over what there is, which stays as it was in the cache.
func TestUpdates(t *testing.T) {
	in := Input{Service: service(), Pods: []*corev1.Pod{pod(1)}, Changed: changed}
	in.Endpoints = Decide(in).Create
	in.Endpoints.ResourceVersion, in.Endpoints.Annotations["mine"] = "5", "stays"
	in.Changed = time.Time{}
	for name, change := range map[string]func(*Input){
		"a Pod comes":         func(in *Input) { in.Pods = []*corev1.Pod{pod(1), pod(2)} },
		"a Pod goes":          func(in *Input) { in.Pods = nil },
		"a label of its own":  func(in *Input) { in.Service.Labels = nil },
		"it becomes headless": func(in *Input) { in.Service.Spec.ClusterIP = "None" },
		"somebody has written": func(in *Input) {
			in.Endpoints.Subsets[0].Addresses[0].IP = "10.9.9.9"
		},
		"somebody says that it is too large": func(in *Input) {
			in.Endpoints.Annotations["endpoints.kubernetes.io/over-capacity"] = "truncated"
		},
	} {
		in := Input{Service: service(), Pods: in.Pods, Endpoints: in.Endpoints.DeepCopy()}
		change(&in)
		before := in.Endpoints.DeepCopy()
		plan := Decide(in)
		if plan.Create != nil || plan.Update == nil || plan.Update.ResourceVersion != "5" ||
			plan.Update.Annotations["mine"] != "stays" || len(plan.Update.Annotations) != 1 {
			t.Errorf("%s: %+v", name, plan)
		}
		if !reflect.DeepEqual(in.Endpoints, before) {
			t.Errorf("%s: the input was changed", name)
		}
	}
	going := service(func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} })
	if plan := Decide(Input{Service: going}); plan.Create != nil {
		t.Error("a Service that goes gets Endpoints")
	}
}

// Endpoints hold 1,000 addresses, ready ones before others, and say when there are more.
func TestCapacity(t *testing.T) {
	for _, row := range []struct {
		ready, other         int
		wantReady, wantOther int
		over                 bool
	}{
		{1000, 0, 1000, 0, false},
		{600, 400, 600, 400, false},
		{1001, 0, 1000, 0, true},
		{1001, 5, 1000, 0, true},
		{600, 401, 600, 400, true},
		{0, 1001, 0, 1000, true},
	} {
		var pods []*corev1.Pod
		for i := range row.ready {
			pods = append(pods, pod(i))
		}
		for i := range row.other {
			pods = append(pods, pod(row.ready+i, unready))
		}
		made := Decide(Input{Service: service(), Pods: pods}).Create
		subset := made.Subsets[0]
		if len(subset.Addresses) != row.wantReady || len(subset.NotReadyAddresses) != row.wantOther ||
			(made.Annotations["endpoints.kubernetes.io/over-capacity"] == "truncated") != row.over {
			t.Errorf("%+v: %d and %d, %v", row, len(subset.Addresses), len(subset.NotReadyAddresses), made.Annotations)
		}
		if again := Decide(Input{Service: service(), Pods: pods, Endpoints: made}); again.Update != nil {
			t.Errorf("%+v: a second pass writes", row)
		}
	}
	// Of several subsets each keeps its share.
	var pods []*corev1.Pod
	for i := range 2000 {
		pods = append(pods, pod(i, offers(int32(80+i%2))))
	}
	made := Decide(Input{Service: service(func(s *corev1.Service) {
		s.Spec.Ports[0].TargetPort = intstr.FromString("named")
	}), Pods: pods}).Create
	if len(made.Subsets) != 2 || len(made.Subsets[0].Addresses) != 500 || len(made.Subsets[1].Addresses) != 500 {
		t.Errorf("%d subsets", len(made.Subsets))
	}
}
