package resourcequota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	libraryquota "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	libraryapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
)

// update is a request that changes an object of a kind, or of a subresource of it.
func update(kind, subresource string, before, after runtime.Object) admission.Attributes {
	for _, object := range []runtime.Object{before, after} {
		if stored, err := meta.Accessor(object); err == nil {
			stored.SetResourceVersion("1")
		}
	}
	return admission.NewAttributesRecord(after, before, schema.GroupVersionKind{}, "ns", "x",
		schema.GroupVersionResource{Resource: kind}, subresource, admission.Update, nil, false, nil)
}

// scoped is a quota of objects that meet the requirements, of which nothing is used.
func scoped(hard corev1.ResourceList, of ...corev1.ScopedResourceSelectorRequirement) corev1.ResourceQuota {
	q := corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}}
	q.Name, q.Spec.Hard, q.Spec.ScopeSelector = "q", hard, &corev1.ScopeSelector{MatchExpressions: of}
	for name := range hard {
		q.Status.Used[name] = resource.Quantity{}
	}
	return q
}

func is(scope corev1.ResourceQuotaScope) corev1.ScopedResourceSelectorRequirement {
	return corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}
}

func in(scope corev1.ResourceQuotaScope, names ...string) corev1.ScopedResourceSelectorRequirement {
	return corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpIn, Values: names}
}

// pod asks for so much CPU, and may run for so many seconds if that is more than 0.
func pod(cpu string, deadline int64, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBestEffort}}
	if cpu != "" {
		p.Spec.Containers[0].Resources.Requests = list("cpu", cpu)
		p.Status.QOSClass = corev1.PodQOSBurstable
	}
	if deadline > 0 {
		p.Spec.ActiveDeadlineSeconds = &deadline
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// claim asks for so much storage of the classes, where they are not empty.
func claim(size, class, attributes string, edits ...func(*corev1.PersistentVolumeClaimStatus),
) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Spec.Resources.Requests = list("storage", size)
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	if attributes != "" {
		c.Spec.VolumeAttributesClassName = &attributes
	}
	for _, edit := range edits {
		edit(&c.Status)
	}
	return c
}

func has(class string) func(*corev1.PersistentVolumeClaimStatus) {
	return func(s *corev1.PersistentVolumeClaimStatus) { s.CurrentVolumeAttributesClassName = &class }
}

func becomes(class string) func(*corev1.PersistentVolumeClaimStatus) {
	return func(s *corev1.PersistentVolumeClaimStatus) {
		s.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: class}
	}
}

func service(kind corev1.ServiceType, ports ...int32) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind}}
	for _, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{NodePort: port})
	}
	return s
}

// An update is charged to a quota that did not count the object for all that the object takes, and to one that did for
// what it takes more.
func TestUpdatesAreCharged(t *testing.T) {
	const (
		terminating, lasting = corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating
		bestEffort, more     = corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort
		priority, attributes = corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass
	)
	high := func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }
	near := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"a"}}}}}
	}
	pods, claims := list("pods", "9", "cpu", "9"), list("persistentvolumeclaims", "9", "requests.storage", "9Gi",
		"fast.storageclass.storage.k8s.io/requests.storage", "9Gi",
		"fast.storageclass.storage.k8s.io/persistentvolumeclaims", "9")
	services := list("services", "9", "services.nodeports", "9", "services.loadbalancers", "9")
	for _, row := range []struct {
		name    string
		quota   corev1.ResourceQuota
		request admission.Attributes
		want    corev1.ResourceList
	}{
		{"a deadline, Terminating", scoped(pods, is(terminating)), update("pods", "", pod("1", 0), pod("1", 60)),
			list("pods", "1", "cpu", "1")},
		{"a deadline, NotTerminating", scoped(pods, is(lasting)), update("pods", "", pod("1", 0), pod("1", 60)), nil},
		{"a deadline, any Pod", scoped(pods), update("pods", "", pod("1", 0), pod("1", 60)), nil},
		{"an earlier deadline, Terminating", scoped(pods, is(terminating)), update("pods", "", pod("1", 60),
			pod("1", 59)), nil},
		{"a deadline, BestEffort", scoped(list("pods", "9"), is(bestEffort)), update("pods", "", pod("", 0),
			pod("", 60)), nil},
		{"a deadline, BestEffort and Terminating", scoped(list("pods", "9"), is(bestEffort), is(terminating)),
			update("pods", "", pod("", 0), pod("", 60)), list("pods", "1")},
		{"a deadline, Terminating and not BestEffort", scoped(pods, is(terminating), is(more)), update("pods", "",
			pod("1", 0), pod("1", 60)), list("pods", "1", "cpu", "1")},
		{"a deadline, the priority class", scoped(pods, in(priority, "high")), update("pods", "", pod("1", 0, high),
			pod("1", 60, high)), nil},
		{"a deadline, the priority class and Terminating", scoped(pods, in(priority, "high"), is(terminating)),
			update("pods", "", pod("1", 0, high), pod("1", 60, high)), list("pods", "1", "cpu", "1")},
		{"a deadline, another priority class and Terminating", scoped(pods, in(priority, "low"), is(terminating)),
			update("pods", "", pod("1", 0, high), pod("1", 60, high)), nil},
		{"a deadline, near other namespaces", scoped(pods, is(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)),
			update("pods", "", pod("1", 0, near), pod("1", 60, near)), nil},
		{"the end, Terminating", scoped(pods, is(terminating)), update("pods", "status", pod("1", 60),
			pod("1", 60, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })), nil},
		{"a resize, Terminating", scoped(pods, is(terminating)), update("pods", "resize", pod("1", 60),
			pod("3", 60)), list("cpu", "2")},
		{"a resize, NotTerminating", scoped(pods, is(lasting)), update("pods", "resize", pod("1", 60), pod("3", 60)),
			nil},
		{"a smaller size, Terminating", scoped(pods, is(terminating)), update("pods", "resize", pod("3", 60),
			pod("1", 60)), nil},

		{"the first attributes", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims", "",
			claim("2Gi", "", ""), claim("2Gi", "", "gold")), list("persistentvolumeclaims", "1", "requests.storage",
			"2Gi")},
		{"other attributes", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims", "",
			claim("2Gi", "", "silver", has("silver")), claim("2Gi", "", "gold", has("silver"))),
			list("persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"attributes of before", scoped(claims, in(attributes, "silver")), update("persistentvolumeclaims", "",
			claim("2Gi", "", "silver", has("silver")), claim("2Gi", "", "gold", has("silver"))), nil},
		{"attributes of none", scoped(claims, corev1.ScopedResourceSelectorRequirement{ScopeName: attributes,
			Operator: corev1.ScopeSelectorOpDoesNotExist}), update("persistentvolumeclaims", "",
			claim("2Gi", "", ""), claim("2Gi", "", "gold")), nil},
		{"attributes that it has got", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims",
			"status", claim("2Gi", "", "gold", has("silver")), claim("2Gi", "", "gold", has("gold"))), nil},
		{"attributes that it gets", scoped(claims, in(attributes, "brass")), update("persistentvolumeclaims",
			"status", claim("2Gi", "", "gold"), claim("2Gi", "", "gold", becomes("brass"))),
			list("persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"attributes that nobody asked for", scoped(claims, in(attributes, "brass")), update("persistentvolumeclaims",
			"status", claim("2Gi", "", "gold"), claim("2Gi", "", "gold", has("brass"))),
			list("persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"growth", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims", "",
			claim("2Gi", "", "gold"), claim("5Gi", "", "gold")), list("requests.storage", "3Gi")},
		{"growth with other attributes", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims", "",
			claim("2Gi", "", "silver"), claim("5Gi", "", "gold")), list("persistentvolumeclaims", "1",
			"requests.storage", "5Gi")},
		{"growth elsewhere", scoped(claims, in(attributes, "tin")), update("persistentvolumeclaims", "",
			claim("2Gi", "", "gold"), claim("5Gi", "", "gold")), nil},
		{"a smaller claim", scoped(claims, in(attributes, "gold")), update("persistentvolumeclaims", "",
			claim("5Gi", "", "gold"), claim("2Gi", "", "gold")), nil},
		{"a storage class", scoped(claims), update("persistentvolumeclaims", "", claim("2Gi", "", ""),
			claim("2Gi", "fast", "")), list("fast.storageclass.storage.k8s.io/requests.storage", "2Gi",
			"fast.storageclass.storage.k8s.io/persistentvolumeclaims", "1")},

		{"a load balancer", scoped(services), update("services", "", service("ClusterIP", 0, 0),
			service("LoadBalancer", 0, 0)), list("services.nodeports", "2", "services.loadbalancers", "1")},
		{"a load balancer no more", scoped(services), update("services", "", service("LoadBalancer", 0, 0),
			service("NodePort", 0, 0)), nil},
		{"ports on nodes", scoped(services), update("services", "", service("ExternalName"),
			service("NodePort", 0, 0)), list("services.nodeports", "2")},
		{"a port more", scoped(services), update("services", "", service("NodePort", 1), service("NodePort", 1, 0)),
			list("services.nodeports", "1")},
		{"Services are in no scope", scoped(services, is(terminating)), update("services", "",
			service("ClusterIP", 0), service("NodePort", 0)), nil},
	} {
		want := list()
		for name := range row.quota.Status.Hard {
			want[name] = row.want[name]
		}
		evaluator := of(row.request.GetResource().Resource)
		charged, err := libraryquota.CheckRequest([]corev1.ResourceQuota{row.quota}, row.request, evaluator, nil)
		if err != nil || !equality.Semantic.DeepEqual(charged[0].Status.Used, want) {
			t.Errorf("%s: %v %v, want %v", row.name, charged, err, want)
		}
		full := row.quota.DeepCopy()
		full.Status.Used = full.Status.Hard
		_, err = libraryquota.CheckRequest([]corev1.ResourceQuota{*full}, row.request, evaluator, nil)
		if refused := err != nil; refused != (row.want != nil && row.request.GetSubresource() != "status") {
			t.Errorf("%s, where the quota is full: %v", row.name, err)
		}
	}
}

// What has to be said where a quota bounds it has to be said by an object that comes under the quota, too.
func TestMovesAreHeldToWhatMustBeSaid(t *testing.T) {
	q := scoped(list("cpu", "9"), is(corev1.ResourceQuotaScopeTerminating))
	_, err := libraryquota.CheckRequest([]corev1.ResourceQuota{q}, update("pods", "", pod("", 0), pod("", 60)),
		of("pods"), nil)
	const want = `pods "x" is forbidden: failed quota: q: must specify cpu for: c`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// What is limited where no quota allows it is not to be had by an update either.
func TestMovesAreHeldToLimits(t *testing.T) {
	ofScope := func(kind string, scope corev1.ScopedResourceSelectorRequirement) []libraryapi.LimitedResource {
		return []libraryapi.LimitedResource{{Resource: kind,
			MatchScopes: []corev1.ScopedResourceSelectorRequirement{scope}}}
	}
	terminating := is(corev1.ResourceQuotaScopeTerminating)
	gold := in(corev1.ResourceQuotaScopeVolumeAttributesClass, "gold")
	limitedTime, limitedClass := ofScope("pods", terminating), ofScope("persistentvolumeclaims", gold)
	limitedPods := []libraryapi.LimitedResource{{Resource: "pods", MatchContains: []string{"pods"}}}
	lasting := scoped(list("pods", "1"), is(corev1.ResourceQuotaScopeNotTerminating))
	full := scoped(list("pods", "1"), terminating)
	full.Status.Used = full.Status.Hard
	deadline := update("pods", "", pod("1", 0), pod("1", 60))
	toGold := []runtime.Object{claim("1Gi", "", "tin"), claim("1Gi", "", "gold")}
	for _, row := range []struct {
		name    string
		limited []libraryapi.LimitedResource
		quotas  []corev1.ResourceQuota
		request admission.Attributes
		want    string
	}{
		{"no quota", limitedTime, nil, deadline,
			"insufficient quota to match these scopes: [{Terminating Exists []}]"},
		{"a quota of others", limitedTime, []corev1.ResourceQuota{lasting}, deadline,
			"insufficient quota to match these scopes: [{Terminating Exists []}]"},
		{"a quota that allows it, which is held to elsewhere", limitedTime, []corev1.ResourceQuota{full}, deadline, ""},
		{"a quota that it leaves", limitedPods, []corev1.ResourceQuota{lasting}, deadline,
			`pods "x" is forbidden: insufficient quota to consume: count/pods,pods`},
		{"a quota that it comes to", limitedPods, []corev1.ResourceQuota{lasting, scoped(list("pods", "1",
			"count/pods", "1"), terminating)}, deadline, ""},
		{"no move", limitedTime, nil, update("pods", "", pod("1", 60), pod("1", 59)), ""},
		{"attributes", limitedClass, nil, update("persistentvolumeclaims", "", toGold[0], toGold[1]),
			"insufficient quota to match these scopes: [{VolumeAttributesClass In [gold]}]"},
		{"attributes that a status reports", limitedClass, nil, update("persistentvolumeclaims", "status", toGold[0],
			toGold[1]), ""},
		{"what is in no scope", limitedClass, nil, update("services", "", service("ClusterIP"), service("NodePort", 0)),
			""},
	} {
		evaluator, got := of(row.request.GetResource().Resource), ""
		if moves(evaluator, row.request) {
			if err := allowMove(evaluator, row.quotas, row.request, row.limited); err != nil {
				got = err.Error()
			}
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if hard := full.Status.Hard["pods"]; hard.Value() != 1 {
		t.Errorf("the quota itself has been changed to %v", full.Status)
	}
}
