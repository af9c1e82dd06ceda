package resourceclaim

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// newPod returns a Pod that requests one claim by name and one by a template.
func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
			{Name: "shared", ResourceClaimName: ptr.To("fabric")},
			{Name: "gpu", ResourceClaimTemplateName: ptr.To("one-gpu")}}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// says makes the Pod's status name a claim; without a name it says that no claim is needed.
func says(asked, claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		status := corev1.PodResourceClaimStatus{Name: asked}
		if claim != "" {
			status.ResourceClaimName = &claim
		}
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, status)
	}
}

func newTemplate() *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"},
				Annotations: map[string]string{"note": "x"}},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
				{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}}
}

// claimOf returns a claim that was created for one of the Pod's requests.
func claimOf(name, asked string, changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		UID: "claim-uid", Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: asked},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newPod(), podKind)}}}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func leaving(claim *resourcev1.ResourceClaim) { claim.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

func TestDecide(t *testing.T) {
	const missing = "Warning FailedResourceClaimCreation PodResourceClaim gpu: resource claim template " +
		`"one-gpu" not found`
	for name, row := range map[string]struct {
		pod        *corev1.Pod
		own        []*resourcev1.ResourceClaim
		noTemplate bool
		creates    int
		names      map[string]string
		missing    []string
		leaving    int
		event      string
	}{
		"none yet": {pod: newPod(), creates: 1},
		"made, not named": {pod: newPod(), own: []*resourcev1.ResourceClaim{claimOf("a", "gpu")},
			names: map[string]string{"gpu": "a"}},
		"made and named": {pod: newPod(says("gpu", "a")), own: []*resourcev1.ResourceClaim{claimOf("a", "gpu")}},
		"not needed":     {pod: newPod(says("gpu", "")), noTemplate: true},
		"no template":    {pod: newPod(), noTemplate: true, missing: []string{"one-gpu"}, event: missing},
		"no template any more": {pod: newPod(says("gpu", "a")), noTemplate: true,
			own: []*resourcev1.ResourceClaim{claimOf("a", "gpu")}},
		"named, and gone":      {pod: newPod(says("gpu", "a")), creates: 1},
		"named, and another's": {pod: newPod(says("gpu", "foreign")), creates: 1},
		"named, and for something else": {pod: newPod(says("gpu", "a")),
			own:     []*resourcev1.ResourceClaim{claimOf("b", "nic")},
			creates: 1},
		"its claim goes": {pod: newPod(says("gpu", "a")),
			own: []*resourcev1.ResourceClaim{claimOf("a", "gpu", leaving)}, leaving: 1},
		"its claim goes, another came": {pod: newPod(says("gpu", "a")),
			own:   []*resourcev1.ResourceClaim{claimOf("a", "gpu", leaving), claimOf("b", "gpu")},
			names: map[string]string{"gpu": "b"}},
		"made twice": {pod: newPod(),
			own:   []*resourcev1.ResourceClaim{claimOf("b", "gpu"), claimOf("a", "gpu")},
			names: map[string]string{"gpu": "a"}},
		"made twice, one is named": {pod: newPod(says("gpu", "b")),
			own: []*resourcev1.ResourceClaim{claimOf("a", "gpu"), claimOf("b", "gpu")}},
		"named before it had a note": {pod: newPod(says("gpu", "a")), own: []*resourcev1.ResourceClaim{
			claimOf("a", "gpu", func(c *resourcev1.ResourceClaim) { c.Annotations = nil })}},
	} {
		in := Input{Pod: row.pod, Own: row.own,
			Templates: map[string]*resourcev1.ResourceClaimTemplate{"one-gpu": newTemplate()}}
		if row.noTemplate {
			in.Templates = nil
		}
		before := Input{Pod: in.Pod.DeepCopy()}
		plan := Decide(in)
		if len(plan.Create) != row.creates || len(plan.Leaving) != row.leaving || !slices.Equal(plan.Missing,
			row.missing) || !maps.Equal(plan.Names, row.names) {
			t.Errorf("%s: %+v", name, plan)
		}
		var told []string
		for _, e := range plan.Events {
			told = append(told, e.Type+" "+e.Reason+" "+e.Message)
		}
		if got := strings.Join(told, "; "); got != row.event {
			t.Errorf("%s: tells %q", name, got)
		}
		if !apiequality.Semantic.DeepEqual(in.Pod, before.Pod) {
			t.Errorf("%s: the Pod was changed", name)
		}
	}
}

// The claim follows the template, names the request that it was created for, and is owned by the Pod.
func TestTheClaimIsThePods(t *testing.T) {
	template := newTemplate()
	plan := Decide(Input{Pod: newPod(), Templates: map[string]*resourcev1.ResourceClaimTemplate{"one-gpu": template}})
	if len(plan.Create) != 1 || plan.Create[0].Name != "gpu" {
		t.Fatalf("creates %+v", plan.Create)
	}
	claim := plan.Create[0].Claim
	if claim.Namespace != "default" || claim.GenerateName != "web-gpu-" || claim.Name != "" ||
		!maps.Equal(claim.Labels, template.Spec.Labels) || !maps.Equal(claim.Annotations, map[string]string{
		"note": "x", "resource.kubernetes.io/pod-claim-name": "gpu"}) ||
		!reflect.DeepEqual(claim.Spec, template.Spec.Spec) {
		t.Errorf("creates %+v", claim)
	}
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "web-uid",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	if !reflect.DeepEqual(claim.OwnerReferences, want) {
		t.Errorf("owned by %+v", claim.OwnerReferences)
	}
	claim.Labels["app"] = "changed"
	claim.Spec.Devices.Requests[0].Exactly.DeviceClassName = "changed"
	if !apiequality.Semantic.DeepEqual(template, newTemplate()) {
		t.Error("the claim shares what is the template's")
	}
}

// The name is a valid object name and contains both parts, however long they are.
func TestNameBase(t *testing.T) {
	for _, row := range []struct{ pod, asked, want string }{
		{"web", "gpu", "web-gpu-"},
		{strings.Repeat("p", 50), "abcdef", strings.Repeat("p", 50) + "-abcdef-"},
		{strings.Repeat("p", 51), "abcdef", strings.Repeat("p", 50) + "-abcde-"},
		{strings.Repeat("p", 253), strings.Repeat("c", 63),
			strings.Repeat("p", 44) + "-" + strings.Repeat("c", 11) + "-"},
		{strings.Repeat("p", 43) + "." + strings.Repeat("p", 209), strings.Repeat("c", 63),
			strings.Repeat("p", 43) + "-" + strings.Repeat("c", 11) + "-"},
	} {
		got := nameBase(row.pod, row.asked)
		if got != row.want || len(got) > maxBase || len(validation.IsDNS1123Subdomain(got+"abcde")) > 0 {
			t.Errorf("%s and %s: %q, want %q", row.pod, row.asked, got, row.want)
		}
	}
}

func TestNeedsClaims(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"one that waits":     {func(*corev1.Pod) {}, true},
		"one that runs":      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"one that has ended": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"one that is going":  {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false},
		"one by name only":   {func(p *corev1.Pod) { p.Spec.ResourceClaims = p.Spec.ResourceClaims[:1] }, false},
	} {
		if got := needsClaims(newPod(row.change)); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAccount(t *testing.T) {
	templates := map[string]*resourcev1.ResourceClaimTemplate{"one-gpu": newTemplate()}
	for want, in := range map[string]Input{
		"in its next pass creates a ResourceClaim for gpu": {Pod: newPod(), Templates: templates},
		"in its next pass says in the Pod's status that gpu is ResourceClaim a": {Pod: newPod(), Templates: templates,
			Own: []*resourcev1.ResourceClaim{claimOf("a", "gpu")}},
		"waits for nothing: the ResourceClaims that it asks for by templates are made": {Pod: newPod(says("gpu", "a")),
			Own: []*resourcev1.ResourceClaim{claimOf("a", "gpu")}},
		"waits for ResourceClaimTemplate one-gpu, which is not there": {Pod: newPod()},
		"waits for ResourceClaim a, which is being deleted, to be gone": {Pod: newPod(),
			Own: []*resourcev1.ResourceClaim{claimOf("a", "gpu", leaving)}},
	} {
		if got := account(in, Decide(in)).Explanation().Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
