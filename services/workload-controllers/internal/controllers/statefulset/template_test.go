package statefulset

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// SET-029, SET-031, SET-036, SET-037, SET-039, SET-041, SET-042, SET-044, SET-045, SET-046: a Pod has its
// ordinal, name and hostname, the domain of the governing Service, the labels that say who it is, and its owner.
func TestNewPod(t *testing.T) {
	set := newSet(claimed, start(5))
	set.Namespace = "foo"
	set.Spec.Template.Annotations = map[string]string{"a": "1"}
	plan := Decide(Input{Now: now, Set: set})
	pod := plan.Create[0].Pod
	if pod.Name != "web-5" || pod.Namespace != "foo" || pod.Spec.Hostname != "web-5" || pod.Spec.Subdomain != "nginx" ||
		pod.Annotations["a"] != "1" || pod.Spec.Containers[0].Image != "nginx:1" {
		t.Errorf("%+v", pod)
	}
	want := map[string]string{
		"app": "nginx", "statefulset.kubernetes.io/pod-name": "web-5", "apps.kubernetes.io/pod-index": "5",
		"controller-revision-hash": plan.History.Create.Name,
	}
	if !maps.Equal(pod.Labels, want) {
		t.Errorf("labels %v, want %v", pod.Labels, want)
	}
	yes := true
	if reference := (metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set",
		Controller: &yes, BlockOwnerDeletion: &yes}); !reflect.DeepEqual(pod.OwnerReferences,
		[]metav1.OwnerReference{reference}) {
		t.Errorf("owners %v", pod.OwnerReferences)
	}
}

// SET-036: labels of the template never say that a Pod is another.
func TestIdentityWins(t *testing.T) {
	set := newSet()
	set.Spec.Template.Labels["statefulset.kubernetes.io/pod-name"] = "web-9"
	if pod := Decide(Input{Now: now, Set: set}).Create[0].Pod; pod.Labels["statefulset.kubernetes.io/pod-name"] !=
		"web-0" {
		t.Errorf("labels %v", pod.Labels)
	}
}

// SET-052: a volume of a claim takes the place of the template's volume of that name; the others stay.
func TestVolumes(t *testing.T) {
	set := newSet(claimed)
	set.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "www", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	volumes := Decide(Input{Now: now, Set: set}).Create[0].Pod.Spec.Volumes
	if len(volumes) != 2 || volumes[0].Name != "www" || volumes[0].EmptyDir != nil ||
		volumes[0].PersistentVolumeClaim.ClaimName != "www-web-0" || volumes[1].Name != "tmp" ||
		volumes[1].EmptyDir == nil {
		t.Errorf("%+v", volumes)
	}
}

// SET-008, SET-051, SET-053: a claim is its template's, with a name and labels of its own. What class it gets without
// one in the template is not for the set to say.
func TestNewClaim(t *testing.T) {
	set := newSet(claimed)
	made := Decide(Input{Now: now, Set: set}).Create[0].Claims[0].Claim
	if made.Name != "www-web-0" || made.Namespace != "default" || *made.Spec.StorageClassName != "my-storage-class" ||
		!slices.Equal(made.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}) ||
		made.Spec.Resources.Requests.Storage().String() != "1Gi" || len(made.OwnerReferences) != 0 {
		t.Errorf("%+v", made)
	}
	if want := map[string]string{"kept": "label", "app": "nginx"}; !maps.Equal(made.Labels, want) ||
		made.Annotations["kept"] != "annotation" {
		t.Errorf("labels %v, annotations %v", made.Labels, made.Annotations)
	}
	set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil
	if made := Decide(Input{Now: now, Set: set}).Create[0].Claims[0].Claim; made.Spec.StorageClassName != nil {
		t.Errorf("class %s", *made.Spec.StorageClassName)
	}
}

// SET-102: a claim is made with the set as its owner where the policy asks for it.
func TestNewClaimIsOwned(t *testing.T) {
	for policy, want := range map[appsv1.PersistentVolumeClaimRetentionPolicyType]bool{"Retain": false,
		"Delete": true} {
		made := Decide(Input{Now: now, Set: newSet(claimed, retain(policy, "Delete"))}).Create[0].Claims[0].Claim
		if metav1.IsControlledBy(made, newSet()) != want {
			t.Errorf("whenDeleted %s: owners %v", policy, made.OwnerReferences)
		}
	}
}

// SET-040: labels that say who a Pod is come back, whoever took or changed them. Others are the user's.
func TestRelabel(t *testing.T) {
	in := input(newSet(), "0r1 1r1 2r1", "")
	delete(in.Pods[0].Labels, "statefulset.kubernetes.io/pod-name")
	in.Pods[1].Labels["apps.kubernetes.io/pod-index"] = "7"
	in.Pods[2].Labels["mine"] = "yes"
	plan := Decide(in)
	if got := effects(plan); got != "relabel web-0, relabel web-1" {
		t.Fatal(got)
	}
	for i, want := range []map[string]string{
		{"statefulset.kubernetes.io/pod-name": "web-0"}, {"apps.kubernetes.io/pod-index": "1"},
	} {
		if !maps.Equal(plan.Relabel[i].Labels, want) {
			t.Errorf("%v, want %v", plan.Relabel[i].Labels, want)
		}
	}
	if got := string(labelPatch(plan.Relabel[1])); got !=
		`{"metadata":{"labels":{"apps.kubernetes.io/pod-index":"1"},"uid":"web-1"}}` {
		t.Error(got)
	}
}

// SET-004, SET-039: the Pods of a set with a long name can carry the name of their revision as a label.
func TestLongNames(t *testing.T) {
	for _, length := range []int{52, 53, 61} {
		set := newSet()
		set.Name = strings.Repeat("w", length)
		for count := range int32(20) {
			set.Status.CollisionCount = &count
			for key, value := range Decide(Input{Now: now, Set: set}).Create[0].Pod.Labels {
				if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
					t.Errorf("a name of %d characters: label %s=%s: %v", length, key, value, problems)
				}
			}
		}
		if got := Decide(Input{Now: now, Set: set}).History.Create.Name; !strings.HasPrefix(got, set.Name[:52]+"-") {
			t.Errorf("a name of %d characters becomes %s", length, got)
		}
	}
}
