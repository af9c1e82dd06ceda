package resourcetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// gpuClaim asks for one device.
func gpuClaim(name string, admin *bool) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", AdminAccess: admin}}}}}}
}

// oneGPU is a device on a node.
func oneGPU() *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.example.com", Pool: "n1", Device: "gpu-0"}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"n1"}}}}}}}
}

// A claim gets devices, is reserved, gets a status from its driver, and is free again.
func testDevices(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "devices")
	claims := s.Client.ResourceV1().ResourceClaims(ns)
	asked := gpuClaim("gpu", nil)
	asked.Status.Allocation = oneGPU()
	made := must[*resourcev1.ResourceClaim](t, "creating")(claims.Create(ctx, asked, metav1.CreateOptions{}))
	if exact := made.Spec.Devices.Requests[0].Exactly; made.Status.Allocation != nil || made.Generation != 0 ||
		exact.AllocationMode != resourcev1.DeviceAllocationModeExactCount || exact.Count != 1 {
		t.Errorf("a new claim is %+v", made)
	}
	wanting := made.DeepCopy()
	wanting.Spec.Devices.Requests[0].Exactly.Count = 2
	_, err := claims.Update(ctx, wanting, metav1.UpdateOptions{})
	refusedAt(t, err, "spec")

	write := func(what string, change func(*resourcev1.ResourceClaim)) {
		t.Helper()
		change(made)
		made = must[*resourcev1.ResourceClaim](t, what)(claims.UpdateStatus(ctx, made, metav1.UpdateOptions{}))
	}
	early := made.DeepCopy()
	early.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}}
	_, err = claims.UpdateStatus(ctx, early, metav1.UpdateOptions{})
	refusedAt(t, err, "status.reservedFor")
	write("allocating", func(c *resourcev1.ResourceClaim) { c.Status.Allocation = oneGPU() })
	write("reserving", func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = early.Status.ReservedFor })
	write("telling", func(c *resourcev1.ResourceClaim) {
		c.Labels = map[string]string{"by": "status"}
		c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "gpu.example.com", Pool: "n1", Device: "gpu-0",
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "R",
				LastTransitionTime: metav1.Now()}}}}
	})
	if len(made.Status.Devices) != 1 || made.Labels["by"] != "" {
		t.Errorf("the claim is %+v, labels %v", made.Status, made.Labels)
	}
	other := made.DeepCopy()
	other.Status.Allocation.Devices.Results[0].Device = "gpu-1"
	_, err = claims.UpdateStatus(ctx, other, metav1.UpdateOptions{})
	refusedAt(t, err, "status.allocation")
	free := made.DeepCopy()
	free.Status.Allocation = nil
	_, err = claims.UpdateStatus(ctx, free, metav1.UpdateOptions{})
	refusedAt(t, err, "status.reservedFor")
	write("freeing", func(c *resourcev1.ResourceClaim) { c.Status.Allocation, c.Status.ReservedFor = nil, nil })
	if made.Status.Devices != nil {
		t.Errorf("what was told of a device is left: %+v", made.Status.Devices)
	}
	t.Run("rights", func(t *testing.T) { testDeviceRights(t, s, ns) })
	t.Run("administrators", func(t *testing.T) { testDeviceAdministrators(t, s) })
	t.Run("slices", func(t *testing.T) { testSlices(t, s) })
	t.Run("quotas", func(t *testing.T) { testQuotaOfDevices(t, s) })
}

// testQuotaOfDevices: what claims may get at most is charged by class.
func testQuotaOfDevices(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "quota-devices")
	const class = "gpu.example.com.deviceclass.resource.k8s.io/devices"
	newQuota(t, s, ns, "devices", amounts(class, "1", "count/resourceclaims.resource.k8s.io", "9"))
	claims := s.Client.ResourceV1().ResourceClaims(ns)
	servertest.Eventually(t, "the quota holds", func(ctx context.Context) string {
		two := gpuClaim("two", nil)
		two.Spec.Devices.Requests[0].Exactly.Count = 2
		_, err := claims.Create(ctx, two, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) || isUnknown(err) {
			return fmt.Sprint("a claim for two devices: ", err)
		}
		refused(t, err, "exceeded quota: devices, requested: "+class+"=2, used: "+class+"=0, limited: "+class+"=1")
		return ""
	})
	must[*resourcev1.ResourceClaim](t, "creating")(claims.Create(ctx, gpuClaim("one", nil), metav1.CreateOptions{}))
	if got := used(t, s, ns, "devices", class); got != "1" {
		t.Errorf("%s devices are charged", got)
	}
}

// testDeviceRights: who writes a status allocates nothing without the right to, and tells of no driver's devices but
// its own.
func testDeviceRights(t *testing.T, s *servertest.Server, ns string) {
	ctx := t.Context()
	rule := func(verbs, resources []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{resourcev1.GroupName}, Verbs: verbs, Resources: resources,
			ResourceNames: names}
	}
	status := rule([]string{"get", "update", "patch"}, []string{"resourceclaims", "resourceclaims/status"})
	grant(t, s, "dra-allocator", status, rule([]string{"update"}, []string{"resourceclaims/binding"}))
	grant(t, s, "dra-far", status,
		rule([]string{"arbitrary-node:update"}, []string{"resourceclaims/driver"}, "gpu.example.com"))
	grantTo(t, s, "dra-near", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "near"}, status,
		rule([]string{"associated-node:update"}, []string{"resourceclaims/driver"}, "gpu.example.com"))
	grant(t, s, "dra-clerk", status)

	claims := s.Client.ResourceV1().ResourceClaims(ns)
	must[*resourcev1.ResourceClaim](t, "creating")(claims.Create(ctx, gpuClaim("watched", nil), metav1.CreateOptions{}))
	allocate := func(c *resourcev1.ResourceClaim) { c.Status.Allocation = oneGPU() }
	say := func(driver string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: driver, Pool: "n1", Device: "gpu-0",
				Data: nil, Conditions: []metav1.Condition{}}}
		}
	}
	write := func(client kubernetes.Interface, change func(*resourcev1.ResourceClaim), dryRun ...string) error {
		now := must[*resourcev1.ResourceClaim](t, "reading")(claims.Get(ctx, "watched", metav1.GetOptions{}))
		change(now)
		_, err := client.ResourceV1().ResourceClaims(ns).UpdateStatus(ctx, now,
			metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
	allocator := impersonate(t, s, "dra-allocator", "system:authenticated")
	near := func(node string) kubernetes.Interface {
		config := s.ConfigAs(servertest.Admin)
		config.Impersonate = restclient.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":near",
			Groups: []string{"system:authenticated"},
			Extra:  map[string][]string{"authentication.kubernetes.io/node-name": {node}}}
		return must[kubernetes.Interface](t, "making a client")(kubernetes.NewForConfig(config))
	}
	clerk := impersonate(t, s, "dra-clerk", "system:authenticated")
	far := impersonate(t, s, "dra-far", "system:authenticated")
	forbidden := func(what string, err error, words string) {
		t.Helper()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", what, err, words)
		}
	}
	const binding = `requires the verb "update" on resourceclaims/binding in all namespaces`
	forbidden("a clerk allocates", write(clerk, allocate), binding)
	forbidden("a driver allocates", write(far, allocate), binding)
	if err := write(allocator, allocate); err != nil {
		t.Fatalf("allocating: %v", err)
	}
	if err := write(clerk, func(*resourcev1.ResourceClaim) {}); err != nil {
		t.Errorf("a clerk changes nothing: %v", err)
	}
	const driver = `on resourceclaims/driver "gpu.example.com"`
	forbidden("a clerk tells of devices", write(clerk, say("gpu.example.com")), driver)
	forbidden("who allocates tells of devices", write(allocator, say("gpu.example.com")), driver)
	forbidden("a driver of another node tells", write(near("n2"), say("gpu.example.com")), driver)
	forbidden("a driver tells of another's", write(far, say("nic.example.com")),
		`on resourceclaims/driver "nic.example.com"`)
	for who, client := range map[string]kubernetes.Interface{"far": far, "near": near("n1")} {
		if err := write(client, say("gpu.example.com"), metav1.DryRunAll); err != nil {
			t.Errorf("the driver from %s: %v", who, err)
		}
	}
	if err := write(far, say("gpu.example.com")); err != nil {
		t.Fatalf("telling: %v", err)
	}
	// What was told goes with the device.
	if err := write(allocator, func(c *resourcev1.ResourceClaim) { c.Status.Allocation = nil }); err != nil {
		t.Errorf("freeing: %v", err)
	}
}

// testDeviceAdministrators: only where a namespace says so may its users ask as administrators.
func testDeviceAdministrators(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "device-admins")
	claims, templates := s.Client.ResourceV1().ResourceClaims(ns), s.Client.ResourceV1().ResourceClaimTemplates(ns)
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: gpuClaim("", ptr.To(true)).Spec}}
	_, err := claims.Create(ctx, gpuClaim("admin", ptr.To(true)), metav1.CreateOptions{})
	refusedAt(t, err, "spec.devices.requests[0].exactly.adminAccess")
	_, err = templates.Create(ctx, template, metav1.CreateOptions{})
	refusedAt(t, err, "spec.spec.devices.requests[0].exactly.adminAccess")
	plain := must[*resourcev1.ResourceClaim](t, "creating")(claims.Create(ctx, gpuClaim("plain", ptr.To(false)),
		metav1.CreateOptions{}))
	plain.Status.Allocation = oneGPU()
	plain.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	_, err = claims.UpdateStatus(ctx, plain, metav1.UpdateOptions{})
	refusedAt(t, err, "status.allocation.devices.results[0].adminAccess")

	label := []byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`)
	must[*corev1.Namespace](t, "labelling")(s.Client.CoreV1().Namespaces().Patch(ctx, ns, types.MergePatchType, label,
		metav1.PatchOptions{}))
	must[*resourcev1.ResourceClaim](t, "asking")(claims.Create(ctx, gpuClaim("admin", ptr.To(true)),
		metav1.CreateOptions{}))
	must[*resourcev1.ResourceClaimTemplate](t, "asking by a template")(templates.Create(ctx, template,
		metav1.CreateOptions{}))
}

// testSlices: slices count their changes, are found by what they are of, and do not move.
func testSlices(t *testing.T, s *servertest.Server) {
	ctx, slices := t.Context(), s.Client.ResourceV1().ResourceSlices()
	slice := func(name, node, driver string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "d", Taints: []resourcev1.DeviceTaint{{Key: "k",
				Effect: resourcev1.DeviceTaintEffectNoSchedule}}}}}}
	}
	made := must[*resourcev1.ResourceSlice](t, "creating")(slices.Create(ctx, slice("a-gpu", "a", "gpu.example.com"),
		metav1.CreateOptions{}))
	must[*resourcev1.ResourceSlice](t, "creating")(slices.Create(ctx, slice("b-gpu", "b", "gpu.example.com"),
		metav1.CreateOptions{}))
	must[*resourcev1.ResourceSlice](t, "creating")(slices.Create(ctx, slice("a-nic", "a", "nic.example.com"),
		metav1.CreateOptions{}))
	for selector, want := range map[string]int{"spec.nodeName=a": 2, "spec.driver=gpu.example.com": 2,
		"spec.nodeName=a,spec.driver=gpu.example.com": 1, "spec.pool.name=b": 1, "spec.nodeName=c": 0} {
		list := must[*resourcev1.ResourceSliceList](t, selector)(slices.List(ctx,
			metav1.ListOptions{FieldSelector: selector}))
		if len(list.Items) != want {
			t.Errorf("%s selects %d, want %d", selector, len(list.Items), want)
		}
	}
	if made.Generation != 1 || made.Spec.Devices[0].Taints[0].TimeAdded == nil {
		t.Errorf("a new slice is of generation %d, %+v", made.Generation, made.Spec.Devices[0].Taints)
	}
	since := made.Spec.Devices[0].Taints[0].TimeAdded
	again := made.DeepCopy()
	again.Spec.Devices[0].Taints[0].TimeAdded = nil
	again = must[*resourcev1.ResourceSlice](t, "saying the same")(slices.Update(ctx, again, metav1.UpdateOptions{}))
	if again.Generation != 1 || !again.Spec.Devices[0].Taints[0].TimeAdded.Equal(since) {
		t.Errorf("the same is of generation %d, since %v", again.Generation, again.Spec.Devices[0].Taints[0].TimeAdded)
	}
	moved := again.DeepCopy()
	moved.Spec.NodeName = ptr.To("b")
	_, err := slices.Update(ctx, moved, metav1.UpdateOptions{})
	refusedAt(t, err, "spec.nodeName")
	if err := slices.DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "spec.nodeName=a"}); err != nil {
		t.Errorf("deleting: %v", err)
	}
}
