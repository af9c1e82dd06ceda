package endpointfeed

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
)

func pod(app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u",
		Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: "n1"}}
}

func service(name, app string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if app != "" {
		s.Spec.Selector = map[string]string{"app": app}
	}
	return s
}

// What a Service says of a Pod changes with these, and with nothing else of what the cache keeps.
func TestChanged(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":       {func(*corev1.Pod) {}, false},
		"its version":   {func(p *corev1.Pod) { p.ResourceVersion = "2" }, false},
		"a restart":     {func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{}} }, false},
		"an annotation": {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"POD-144 readiness": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "Ready",
				Status: "True"}}
		}, true},
		"POD-160 it goes": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"it ends":         {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"it starts":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"an address":      {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, true},
		"addresses":       {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}} }, true},
		"a node":          {func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, true},
		"a host name":     {func(p *corev1.Pod) { p.Spec.Hostname = "h" }, true},
		"a subdomain":     {func(p *corev1.Pod) { p.Spec.Subdomain = "s" }, true},
		"labels":          {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "debug"} }, true},
	} {
		next := pod("web")
		row.change(next)
		if got := Changed(pod("web"), next); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// One Pod with an address that the API refuses must not keep the others out.
func TestAddressable(t *testing.T) {
	for addresses, want := range map[string]bool{
		"": true, "10.0.0.1": true, "10.0.0.1 fd00::1": true, "127.0.0.1": false, "10.0.0.1 ::1": false,
		"169.254.1.1": false, "fe80::1": false, "0.0.0.0": false, "224.0.0.1": false, "ten": false, "010.0.0.1": false,
	} {
		p := pod("web")
		for _, address := range strings.Fields(addresses) {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: address})
		}
		index := podset.NewIndex()
		s := NewServices(index)
		s.Put(service("web", "web"))
		index.Upsert(p)
		if got := len(s.Pods(service("web", "web"))) == 1; got != want {
			t.Errorf("%q: %t", addresses, got)
		}
	}
}

func TestSelects(t *testing.T) {
	external := service("e", "web")
	external.Spec.Type = corev1.ServiceTypeExternalName
	for want, all := range map[bool][]*corev1.Service{
		true:  {service("web", "web")},
		false: {service("web", ""), external},
	} {
		for _, s := range all {
			if Selects(s) != want {
				t.Errorf("%s: %t", s.Name, !want)
			}
		}
	}
}

func names(all []reconcile.Request) []string {
	var found []string
	for _, request := range all {
		found = append(found, request.Name)
	}
	return found
}

// A Pod wakes up the Services that select it, and those that did: no other event wakes them.
func TestOnPod(t *testing.T) {
	index := podset.NewIndex()
	s := NewServices(index)
	for _, known := range []*corev1.Service{service("web", "web"), service("debug", "debug"), service("none", "")} {
		s.Put(known)
	}
	expect := func(what string, pod *corev1.Pod, change podset.Change, want ...string) {
		t.Helper()
		if got := names(s.OnPod(pod, change)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	first := pod("web")
	expect("it comes", first, index.Upsert(first), "web")
	expect("nothing changes", pod("web"), index.Upsert(pod("web")))
	expect("it is labelled anew", pod("debug"), index.Upsert(pod("debug")), "debug", "web")
	if got := s.Pods(service("web", "web")); len(got) > 0 {
		t.Errorf("the Service still has %d Pods", len(got))
	}
	expect("it is gone", pod("debug"), index.Delete(pod("debug")), "debug")
	expect("it was never seen", pod("web"), index.Delete(pod("web")), "web")
	s.Remove(service("web", "web"))
	expect("its Service is gone", pod("web"), index.Upsert(pod("web")))
}

func woken(fire func(wake.Queue)) []string {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	fire(q)
	var found []string
	for q.Len() > 0 {
		request, _ := q.Get()
		found = append(found, request.Name)
		q.Done(request)
	}
	slices.Sort(found)
	return found
}

func TestOnNode(t *testing.T) {
	index := podset.NewIndex()
	s := NewServices(index)
	s.Put(service("web", "web"))
	index.Upsert(pod("web"))
	node := func(name, zone string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelTopologyZone: zone, "other": zone + name}}}
	}
	for name, row := range map[string]struct {
		fire func(wake.Queue)
		want []string
	}{
		"it comes": {func(q wake.Queue) {
			s.OnNode().CreateFunc(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: node("n1", "a")}, q)
		}, []string{"web"}},
		"one without Pods": {func(q wake.Queue) {
			s.OnNode().CreateFunc(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: node("n2", "a")}, q)
		}, nil},
		"another zone": {func(q wake.Queue) {
			s.OnNode().UpdateFunc(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: node("n1", "a"),
				ObjectNew: node("n1", "b")}, q)
		}, []string{"web"}},
		"the same zone": {func(q wake.Queue) {
			s.OnNode().UpdateFunc(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: node("n1", "a"),
				ObjectNew: node("n1", "a")}, q)
		}, nil},
	} {
		if got := woken(row.fire); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestSlices(t *testing.T) {
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	var found Slices
	for range 2 { // each controller asks
		var err error
		if found, err = SlicesOf(store, "us"); err != nil {
			t.Fatal(err)
		}
	}
	slice := func(namespace, service, manager string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: service + "-" + manager, Labels: map[string]string{"kubernetes.io/service-name": service,
				"endpointslice.kubernetes.io/managed-by": manager}}}
	}
	ours := slice("default", "web", "us")
	for _, s := range []*discoveryv1.EndpointSlice{ours, slice("default", "web", "them"), slice("default", "db", "us"),
		slice("other", "web", "us")} {
		if err := store.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := found.Of("default", "web"); len(got) != 1 || got[0] != ours {
		t.Errorf("found %v", got)
	}
	moved := ours.DeepCopy()
	maps.Copy(moved.Labels, map[string]string{"kubernetes.io/service-name": "db"})
	h := found.OnSlice()
	for name, row := range map[string]struct {
		fire func(wake.Queue)
		want []string
	}{
		"ours comes": {func(q wake.Queue) {
			h.CreateFunc(t.Context(), event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: ours}, q)
		}, []string{"web"}},
		"theirs comes": {func(q wake.Queue) {
			h.CreateFunc(t.Context(), event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: slice("default", "web",
				"them")}, q)
		}, nil},
		"of no Service": {func(q wake.Queue) {
			h.CreateFunc(t.Context(), event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: slice("default", "",
				"us")}, q)
		}, nil},
		"ours is given to another Service": {func(q wake.Queue) {
			h.UpdateFunc(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: ours,
				ObjectNew: moved}, q)
		}, []string{"db", "web"}},
		"ours is taken away": {func(q wake.Queue) {
			h.DeleteFunc(t.Context(), event.TypedDeleteEvent[*discoveryv1.EndpointSlice]{Object: ours}, q)
		}, []string{"web"}},
	} {
		if got := woken(row.fire); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
