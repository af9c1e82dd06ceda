package ephemeralvolume

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func templated() corev1.VolumeSource {
	return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"},
				Annotations: map[string]string{"note": "x"}},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
				StorageClassName: ptr.To("fast"), Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}},
		}}}
}

func newPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: templated()}, {Name: "other"}}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// claimOf is the claim of the Pod with the UID.
func claimOf(uid string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-data",
		UID: "claim-uid"}}
	if uid != "" {
		pod := newPod()
		pod.UID = "web-uid"
		reference := metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
		reference.UID = pod.UID
		if uid != "web-uid" {
			reference.UID = "other-uid"
		}
		claim.OwnerReferences = []metav1.OwnerReference{*reference}
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func leaving(claim *corev1.PersistentVolumeClaim) {
	claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func TestDecide(t *testing.T) {
	const notOwner = "Warning FailedBinding ephemeral volume data: PVC default/web-data was not created for pod " +
		"default/web (pod is not owner)"
	for name, row := range map[string]struct {
		claim            *corev1.PersistentVolumeClaim
		creates, leaving int
		event            string
	}{
		"no claim":                            {creates: 1},
		"its claim":                           {claim: claimOf("web-uid")},
		"its claim is being deleted":          {claim: claimOf("web-uid", leaving), leaving: 1},
		"somebody's claim":                    {claim: claimOf(""), event: notOwner},
		"the claim of the Pod's predecessor":  {claim: claimOf("other-uid"), event: notOwner},
		"somebody's claim that is being gone": {claim: claimOf("", leaving), event: notOwner},
		"owned, but controlled by nobody": {event: notOwner,
			claim: claimOf("web-uid", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].Controller = nil })},
	} {
		in := Input{Pod: newPod(), Claims: map[string]*corev1.PersistentVolumeClaim{}}
		if row.claim != nil {
			in.Claims["web-data"] = row.claim
		}
		before := Input{Pod: in.Pod.DeepCopy(), Claims: map[string]*corev1.PersistentVolumeClaim{}}
		for name, claim := range in.Claims {
			before.Claims[name] = claim.DeepCopy()
		}
		plan := Decide(in)
		if len(plan.Create) != row.creates || len(plan.Leaving) != row.leaving {
			t.Errorf("%s: %+v", name, plan)
		}
		var events []string
		for _, e := range plan.Events {
			events = append(events, e.Type+" "+e.Reason+" "+e.Message)
		}
		if want := (row.event != ""); want != (len(plan.Foreign) == 1) || want && !slices.Equal(events,
			[]string{row.event}) || !want && len(events) > 0 {
			t.Errorf("%s: refuses %v with %q", name, plan.Foreign, events)
		}
		if !apiequality.Semantic.DeepEqual(in, before) {
			t.Errorf("%s: the input was changed", name)
		}
	}
}

// The claim is as the template says, has the name that every other part expects, and is the Pod's.
func TestTheClaimIsThePods(t *testing.T) {
	pod := newPod()
	plan := Decide(Input{Pod: pod})
	if len(plan.Create) != 1 {
		t.Fatalf("creates %v", plan.Create)
	}
	claim := plan.Create[0].Claim
	template := pod.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate
	if claim.Namespace != "default" || claim.Name != "web-data" || plan.Create[0].Volume != "data" ||
		!reflect.DeepEqual(claim.Labels, template.Labels) ||
		!reflect.DeepEqual(claim.Annotations, template.Annotations) || !reflect.DeepEqual(claim.Spec, template.Spec) {
		t.Errorf("creates %+v", claim)
	}
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "web-uid",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	if !reflect.DeepEqual(claim.OwnerReferences, want) {
		t.Errorf("owned by %+v", claim.OwnerReferences)
	}
	claim.Labels["app"] = "changed"
	claim.Spec.AccessModes[0] = "changed"
	if !apiequality.Semantic.DeepEqual(pod, newPod()) {
		t.Error("the claim shares what is the Pod's")
	}
}

func TestNeedsClaims(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"one that waits":       {func(*corev1.Pod) {}, true},
		"one that runs":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"one that has ended":   {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"one that is going":    {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false},
		"one without a volume": {func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[1:] }, false},
	} {
		if got := needsClaims(newPod(row.change)); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAccount(t *testing.T) {
	gone := claimOf("web-uid", leaving)
	for want, claim := range map[string]*corev1.PersistentVolumeClaim{
		"in its next pass creates PersistentVolumeClaim web-data for volume data":                   nil,
		"waits for nothing: the claims of its ephemeral volumes are made: web-data":                 claimOf("web-uid"),
		"waits for PersistentVolumeClaim web-data, which is being deleted, to be gone":              gone,
		"waits for the name of PersistentVolumeClaim web-data, which is not this Pod's, to be free": claimOf(""),
	} {
		in := Input{Pod: newPod(), Claims: map[string]*corev1.PersistentVolumeClaim{}}
		if claim != nil {
			in.Claims["web-data"] = claim
		}
		if got := account(in, Decide(in)).Explanation().Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
