package statefulset

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

var now = time.Unix(1_700_000_000, 0)

type edit = func(*appsv1.StatefulSet)

// newSet is the set of SET-008 without claims, of its first template, after edits.
func newSet(edits ...edit) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), ServiceName: "nginx", RevisionHistoryLimit: ptr.To[int32](10),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}},
			Template: template(1), PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0),
					MaxUnavailable: ptr.To(intstr.FromInt32(1))}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: "Retain", WhenScaled: "Retain"},
		},
		Status: appsv1.StatefulSetStatus{CurrentRevision: revision(1).Name, UpdateRevision: revision(1).Name},
	}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

func template(number int) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: fmt.Sprint("nginx:", number),
			VolumeMounts: []corev1.VolumeMount{{Name: "www", MountPath: "/usr/share/nginx/html"}}}}},
	}
}

// revision is that of the template with the number.
func revision(number int) *appsv1.ControllerRevision {
	changed := template(number)
	made := controllerrevision.Decide(controllerrevision.In{Template: &changed, Owner: claim.Owner{
		Namespace: "default", Name: "web", UID: "set", Kind: kind}}).Create
	made.Revision, made.UID = int64(number), types.UID(made.Name)
	return made
}

func replicas(n int32) edit { return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n } }
func start(n int32) edit {
	return func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: n} }
}
func updated(to int) edit { return func(s *appsv1.StatefulSet) { s.Spec.Template = template(to) } }
func partition(n int32) edit {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}
func minReady(n int32) edit          { return func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = n } }
func parallel(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }
func onDelete(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}
func recovering(s *appsv1.StatefulSet) { s.Annotations = map[string]string{RecoverAnnotation: "true"} }

func unavailable(bound intstr.IntOrString) edit {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &bound }
}

func claimed(s *appsv1.StatefulSet) {
	s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "www", Labels: map[string]string{"kept": "label"},
			Annotations: map[string]string{"kept": "annotation"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To("my-storage-class"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
}

func retain(whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) edit {
	return func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled}
	}
}

// podOf reads a Pod from text: its ordinal, its state and the number of its revision, for example 2r1. The states
// are r for running and ready, u for running and no longer ready, n for running and never ready, p for pending, t
// for being deleted, f for failed, s for succeeded, and d for failed and being deleted.
func podOf(text string) *corev1.Pod {
	at := len(text) - 2
	number, _ := strconv.Atoi(text[at+1:])
	ordinal, _ := strconv.Atoi(text[:at])
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set"},
		Spec: appsv1.StatefulSetSpec{ServiceName: "nginx"}}
	changed := template(number)
	pod := newPod(set, ordinal, revision(number).Name, &changed)
	pod.UID, pod.ResourceVersion = types.UID(pod.Name), "1"
	pod.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour))
	started, later := metav1.NewTime(now.Add(-2*time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	condition := func(status corev1.ConditionStatus, since metav1.Time) {
		pod.Status.StartTime = &started
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, LastTransitionTime: since},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: started}}
	}
	pod.Status.Phase = corev1.PodRunning
	switch text[at] {
	case 'r':
		condition(corev1.ConditionTrue, later)
	case 'u':
		condition(corev1.ConditionFalse, later)
	case 'n':
		condition(corev1.ConditionFalse, started)
	case 'p':
		pod.Status.Phase = corev1.PodPending
	case 't':
		condition(corev1.ConditionTrue, later)
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	case 'f':
		pod.Status.Phase = corev1.PodFailed
	case 's':
		pod.Status.Phase = corev1.PodSucceeded
	case 'd':
		pod.Status.Phase, pod.DeletionTimestamp = corev1.PodFailed, &metav1.Time{Time: now}
	default:
		panic("no such state: " + text)
	}
	return pod
}

// input is what there is: Pods and claims as text. A claim is its name and, after @, who controls it: set, or a Pod.
func input(set *appsv1.StatefulSet, pods, claims string) Input {
	in := Input{Now: now, Set: set, Revisions: []*appsv1.ControllerRevision{revision(1)},
		Claims: map[string]*corev1.PersistentVolumeClaim{}}
	for number := 2; number < 4; number++ {
		if strings.Contains(pods+" ", fmt.Sprint(number, " ")) ||
			set.Spec.Template.Spec.Containers[0].Image == fmt.Sprint("nginx:", number) {
			in.Revisions = append(in.Revisions, revision(number))
		}
	}
	for _, text := range strings.Fields(pods) {
		in.Pods = append(in.Pods, podOf(text))
	}
	for _, text := range strings.Fields(claims) {
		name, by, owned := strings.Cut(text, "@")
		existing := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if owned {
			reference := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: by, UID: types.UID(by),
				Controller: ptr.To(true)}
			if by == "set" {
				reference = claim.Reference(owner(set))
			}
			existing.OwnerReferences = []metav1.OwnerReference{reference}
		}
		in.Claims[name] = existing
	}
	return in
}

// effects is a plan as text, in the order in which it is carried out.
func effects(plan Plan) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, pod := range plan.Adopt {
		add("adopt %s", pod.Name)
	}
	for _, pod := range plan.Release {
		add("release %s", pod.Name)
	}
	if made := plan.History.Create; made != nil {
		add("remember %d", made.Revision)
	}
	if renumbered := plan.History.Renumber; renumbered != nil {
		add("renumber %d", renumbered.Revision)
	}
	for _, r := range plan.Relabel {
		add("relabel %s", r.Pod.Name)
	}
	for _, owned := range plan.Owners {
		by := "nobody"
		if reference := metav1.GetControllerOf(owned); reference != nil {
			by = reference.Kind + " " + reference.Name
		}
		add("give %s to %s", owned.Name, by)
	}
	for _, made := range plan.Storage {
		add("claim %s", made.Claim.Name)
	}
	for _, creation := range plan.Create {
		for _, made := range creation.Claims {
			add("claim %s", made.Claim.Name)
		}
		add("create %s of %s", creation.Pod.Name, strings.TrimPrefix(creation.Pod.Spec.Containers[0].Image, "nginx:"))
	}
	for _, d := range plan.Delete {
		add("delete %s %s", d.Pod.Name, d.Reason)
	}
	for _, r := range plan.Forget {
		add("forget %d", r.Revision)
	}
	if plan.Problem != nil {
		add("fail")
	}
	return strings.Join(all, ", ")
}
