package quota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func list(namesAndAmounts ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		amounts[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return amounts
}

func ptr[T any](v T) *T { return &v }

func TestKind(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"pods": "pods", "cpu": "pods", "requests.memory": "pods", "limits.ephemeral-storage": "pods",
		"hugepages-2Mi": "pods", "requests.hugepages-2Mi": "pods", "requests.example.com/gpu": "pods",
		"count/pods": "pods",
		"services":   "services", "services.nodeports": "services", "services.loadbalancers": "services",
		"count/services": "services", "persistentvolumeclaims": "persistentvolumeclaims",
		"requests.storage": "persistentvolumeclaims", "configmaps": "configmaps", "secrets": "secrets",
		"gold.storageclass.storage.k8s.io/requests.storage":       "persistentvolumeclaims",
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims": "persistentvolumeclaims",
		"replicationcontrollers":                                  "replicationcontrollers",
		"resourcequotas":                                          "resourcequotas",
		"count/deployments.apps":                                  "deployments.apps",
		"count/widgets.example.com":                               "widgets.example.com",
		"gpu.example.com.deviceclass.resource.k8s.io/devices":     "resourceclaims.resource.k8s.io",
		"count/resourceclaims.resource.k8s.io":                    "resourceclaims.resource.k8s.io",
		// No object takes these.
		"example.com/gpu": "", "requests.kubernetes.io/thing": "", "limits.example.com/gpu": "", "count/events": "",
		"count/": "", "count/.apps": "",
		"count/events.events.k8s.io": "", "gold.storageclass.storage.k8s.io/pods": "",
		".storageclass.storage.k8s.io/requests.storage": "", ".deviceclass.resource.k8s.io/devices": "",
		"gpu.deviceclass.resource.k8s.io/claims": "",
	} {
		kind, ok := Kind(name)
		if want == "" && ok || want != "" && (!ok || kind != schema.ParseGroupResource(want)) {
			t.Errorf("%s: %v %t, want %q", name, kind, ok, want)
		}
	}
}

// POD-232 DEP-136
func TestUsage(t *testing.T) {
	claim := func(class string, storage ...string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		if class != "" {
			c.Spec.StorageClassName = &class
		}
		c.Spec.Resources.Requests = list(storage...)
		return c
	}
	promised, older := claim("", "storage", "1Gi"), claim("gold")
	promised.Status.AllocatedResources = list("storage", "2Gi")
	older.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": "silver"}
	service := func(kind corev1.ServiceType, allocates *bool, ports ...int32) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, AllocateLoadBalancerNodePorts: allocates}}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{NodePort: port})
		}
		return s
	}
	ofService := func(ports, balancers string) corev1.ResourceList {
		return list("services", "1", "count/services", "1", "services.nodeports", ports, "services.loadbalancers",
			balancers)
	}
	for _, row := range []struct {
		name      string
		got, want corev1.ResourceList
	}{
		{"POD-232 a Pod", Pod(list("cpu", "1", "memory", "2Gi", "ephemeral-storage", "3Gi", "hugepages-2Mi", "4Mi",
			"example.com/gpu", "5"), list("cpu", "2", "memory", "4Gi", "ephemeral-storage", "6Gi", "hugepages-2Mi",
			"4Mi",
			"example.com/gpu", "5"), false),
			list("pods", "1", "count/pods", "1", "cpu", "1", "requests.cpu", "1", "limits.cpu", "2", "memory", "2Gi",
				"requests.memory", "2Gi", "limits.memory", "4Gi", "ephemeral-storage", "3Gi",
				"requests.ephemeral-storage",
				"3Gi", "limits.ephemeral-storage", "6Gi", "hugepages-2Mi", "4Mi", "requests.hugepages-2Mi", "4Mi",
				"requests.example.com/gpu", "5")},
		{"a Pod that has ended", Pod(list("cpu", "1"), list("cpu", "2"), true), list("count/pods", "1")},
		{"a Pod that asks for nothing", Pod(nil, nil, false), list("pods", "1", "count/pods", "1")},
		{"what has a name of its own", Object(schema.GroupResource{Resource: "secrets"}),
			list("secrets", "1", "count/secrets", "1")},
		{"what has none", Object(schema.GroupResource{Group: "apps", Resource: "deployments"}),
			list("count/deployments.apps", "1")},
		{"a namesake of another group", Object(schema.GroupResource{Group: "example.com", Resource: "services"}),
			list("count/services.example.com", "1")},
		{"an inner Service", Service(service("ClusterIP", nil, 0, 0)), ofService("0", "0")},
		{"a Service on every node", Service(service("NodePort", nil, 0, 30000)), ofService("2", "0")},
		{"a balanced Service", Service(service("LoadBalancer", nil, 0, 0)), ofService("2", "1")},
		{"one without ports on nodes", Service(service("LoadBalancer", ptr(false), 0, 0)), ofService("0", "1")},
		{"one with one that was asked for", Service(service("LoadBalancer", ptr(false), 0, 30000)),
			ofService("1", "1")},
		{"a claim", Claim(claim("", "storage", "1Gi")), list("persistentvolumeclaims", "1",
			"count/persistentvolumeclaims", "1", "requests.storage", "1Gi")},
		{"a claim of a class", Claim(claim("gold", "storage", "1Gi")), list("persistentvolumeclaims", "1",
			"count/persistentvolumeclaims", "1", "requests.storage", "1Gi",
			"gold.storageclass.storage.k8s.io/requests.storage", "1Gi",
			"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1")},
		{"a claim that shrinks", Claim(promised), list("persistentvolumeclaims", "1",
			"count/persistentvolumeclaims", "1", "requests.storage", "2Gi")},
		{"the older way to name a class", Claim(older), list("persistentvolumeclaims", "1",
			"count/persistentvolumeclaims", "1", "silver.storageclass.storage.k8s.io/persistentvolumeclaims", "1")},
	} {
		if !equality.Semantic.DeepEqual(row.got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, row.got, row.want)
		}
	}
}

// A claim counts with all that it may get, whichever of its alternatives it gets.
func TestDevices(t *testing.T) {
	exactly := func(class string, mode resourcev1.DeviceAllocationMode, count int64, admin *bool,
	) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
			AllocationMode: mode, Count: count, AdminAccess: admin}}
	}
	first := func(all ...resourcev1.DeviceRequest) resourcev1.DeviceRequest {
		var request resourcev1.DeviceRequest
		for _, r := range all {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
				DeviceClassName: r.Exactly.DeviceClassName, AllocationMode: r.Exactly.AllocationMode,
				Count: r.Exactly.Count})
		}
		return request
	}
	const gpus, nics = "gpu.deviceclass.resource.k8s.io/devices", "nic.deviceclass.resource.k8s.io/devices"
	for name, row := range map[string]struct {
		requests []resourcev1.DeviceRequest
		want     corev1.ResourceList
	}{
		"none":    {nil, list()},
		"two":     {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 2, ptr(false))}, list(gpus, "2")},
		"all":     {[]resourcev1.DeviceRequest{exactly("gpu", "All", 0, nil)}, list(gpus, "32")},
		"others'": {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 2, ptr(true))}, list()},
		"of two requests": {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 2, nil),
			exactly("gpu", "ExactCount", 1, nil), exactly("nic", "ExactCount", 1, nil)}, list(gpus, "3", nics, "1")},
		"alternatives": {[]resourcev1.DeviceRequest{first(exactly("gpu", "ExactCount", 2, nil),
			exactly("gpu", "ExactCount", 4, nil), exactly("nic", "ExactCount", 1, nil)),
			exactly("gpu", "ExactCount", 1, nil)}, list(gpus, "5", nics, "1")},
	} {
		claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: row.requests}}}
		row.want["count/resourceclaims.resource.k8s.io"] = resource.MustParse("1")
		if got := ResourceClaim(claim); !equality.Semantic.DeepEqual(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// A Pod that should be gone for as long as it had to end counts no more: its node may never confirm it.
func TestHasEnded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, row := range []struct {
		name  string
		phase corev1.PodPhase
		gone  time.Duration // before now
		want  bool
	}{
		{"runs", "Running", 0, false}, {"waits", "Pending", 0, false}, {"succeeded", "Succeeded", 0, true},
		{"failed", "Failed", 0, true}, {"is ending", "Running", 29 * time.Second, false},
		{"the last moment", "Running", 30 * time.Second, false}, {"is overdue", "Running", 31 * time.Second, true},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: row.phase}}
		if row.gone > 0 {
			pod.DeletionTimestamp = &metav1.Time{Time: now.Add(-row.gone)}
			pod.DeletionGracePeriodSeconds = ptr(int64(30))
		}
		if got := HasEnded(pod, now); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}

// A Pod that was given more seconds than a duration can hold has not ended before its time.
func TestTheLongestGraceEndsNothing(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, grace := range []int64{1 << 33, 1 << 34, 1<<63 - 1} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now},
			DeletionGracePeriodSeconds: &grace}}
		if HasEnded(pod, now.Add(time.Hour)) {
			t.Errorf("with %d seconds it has ended an hour later", grace)
		}
	}
}

func TestScopes(t *testing.T) {
	near := func(term corev1.PodAffinityTerm) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}}}
	}
	far := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			PodAffinityTerm: corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}}}}}}}
	plain, bounded, idle := &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}
	bounded.Spec.ActiveDeadlineSeconds, bounded.Spec.PriorityClassName = ptr(int64(0)), "high"
	idle.Status.QOSClass = corev1.PodQOSBestEffort
	claim, changing := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	changing.Spec.VolumeAttributesClassName = ptr("gold")
	changing.Status.CurrentVolumeAttributesClassName = ptr("silver")
	changing.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "brass"}
	const priority, class = corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass
	for _, row := range []struct {
		name     string
		object   Scopes
		scope    corev1.ResourceQuotaScope
		operator corev1.ScopeSelectorOperator
		values   []string
		want     bool
	}{
		{"a deadline", PodScopes(bounded), "Terminating", "Exists", nil, true},
		{"no deadline", PodScopes(plain), "Terminating", "Exists", nil, false},
		{"a deadline", PodScopes(bounded), "NotTerminating", "Exists", nil, false},
		{"no deadline", PodScopes(plain), "NotTerminating", "Exists", nil, true},
		{"best effort", PodScopes(idle), "BestEffort", "Exists", nil, true},
		{"more", PodScopes(plain), "BestEffort", "Exists", nil, false},
		{"best effort", PodScopes(idle), "NotBestEffort", "Exists", nil, false},
		{"more", PodScopes(plain), "NotBestEffort", "Exists", nil, true},
		{"named namespaces", PodScopes(near(corev1.PodAffinityTerm{Namespaces: []string{"a"}})),
			"CrossNamespacePodAffinity", "Exists", nil, true},
		{"selected namespaces", PodScopes(far), "CrossNamespacePodAffinity", "Exists", nil, true},
		{"its own namespace", PodScopes(near(corev1.PodAffinityTerm{})), "CrossNamespacePodAffinity", "Exists", nil,
			false},
		{"a class", PodScopes(bounded), priority, "Exists", nil, true},
		{"no class", PodScopes(plain), priority, "Exists", nil, false},
		{"a class", PodScopes(bounded), priority, "DoesNotExist", nil, false},
		{"no class", PodScopes(plain), priority, "DoesNotExist", nil, true},
		{"the class", PodScopes(bounded), priority, "In", []string{"low", "high"}, true},
		{"another class", PodScopes(bounded), priority, "In", []string{"low"}, false},
		{"no class", PodScopes(plain), priority, "In", []string{"high"}, false},
		{"the class", PodScopes(bounded), priority, "NotIn", []string{"high"}, false},
		{"another class", PodScopes(bounded), priority, "NotIn", []string{"low"}, true},
		{"no class", PodScopes(plain), priority, "NotIn", []string{"high"}, true},
		{"a claim", ClaimScopes(claim), class, "Exists", nil, false},
		{"a claim with classes", ClaimScopes(changing), class, "Exists", nil, true},
		{"what it asks for", ClaimScopes(changing), class, "In", []string{"gold"}, true},
		{"what it has", ClaimScopes(changing), class, "In", []string{"silver"}, true},
		{"what it becomes", ClaimScopes(changing), class, "In", []string{"brass"}, true},
		{"what it never was", ClaimScopes(changing), class, "In", []string{"tin"}, false},
		{"a Pod", PodScopes(plain), class, "DoesNotExist", nil, false},
		{"a claim", ClaimScopes(claim), "NotTerminating", "Exists", nil, false},
		{"what is neither", Scopes{}, priority, "DoesNotExist", nil, false},
	} {
		spec := &corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{
			MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: row.scope, Operator: row.operator,
				Values: row.values}}}}
		if got := row.object.In(spec); got != row.want {
			t.Errorf("%s, %s %s %v: %t", row.name, row.scope, row.operator, row.values, got)
		}
		if row.operator != "Exists" {
			continue
		}
		if got := row.object.In(&corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{
			row.scope}}); got != row.want {
			t.Errorf("%s, %s: %t", row.name, row.scope, got)
		}
	}
	both := &corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"Terminating", "BestEffort"}}
	if PodScopes(bounded).In(both) || !(Scopes{}).In(&corev1.ResourceQuotaSpec{}) {
		t.Error("an object is in all of the scopes, and every object is in none")
	}
}
