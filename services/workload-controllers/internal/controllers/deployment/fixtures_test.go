package deployment

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/revision"
)

var now = time.Unix(1_700_000_000, 0)

// newDeployment is a Deployment "web" of image web:2 with the defaults of the API.
func newDeployment(replicas int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	limit, deadline := int32(10), int32(600)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid", Generation: 3},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: newTemplate("web:2"), RevisionHistoryLimit: &limit, ProgressDeadlineSeconds: &deadline,
			Strategy: rolling("25%", "25%"),
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

func newTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func rolling(surge, unavailable string) appsv1.DeploymentStrategy {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u},
	}
}

func strategy(surge, unavailable string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Strategy = rolling(surge, unavailable) }
}

func recreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

// atRevision says that the start of the revision has been reported.
func atRevision(number int) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{revision.Annotation: strconv.Itoa(number)}
	}
}

func withStatus(status appsv1.DeploymentStatus) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Status = status }
}

// progressed is a status whose condition Progressing has the reason since some time.
func progressed(reason string, ago time.Duration) appsv1.DeploymentStatus {
	at := metav1.NewTime(now.Add(-ago))
	status := map[string]corev1.ConditionStatus{reasonTimedOut: "False", reasonCreateError: "False",
		reasonPaused: "Unknown", reasonResumed: "Unknown"}[reason]
	if status == "" {
		status = corev1.ConditionTrue
	}
	return appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: at, LastTransitionTime: at,
	}}}
}

// newSet is a ReplicaSet of the Deployment: size wanted and present, some of it available. The number of the image is
// its age, too: web:1 is older than web:2.
func newSet(d *appsv1.Deployment, number int, size, available int32,
	changes ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	template := newTemplate(fmt.Sprintf("web:%d", number))
	hash := revision.Hash(&template, nil)
	surge, _ := bounds(d)
	none := int32(0)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, UID: types.UID("rs-" + strconv.Itoa(number)),
			Generation:        1,
			Labels:            map[string]string{"app": "web", revision.HashLabel: hash},
			CreationTimestamp: metav1.NewTime(now.Add(time.Duration(number-100) * time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{claim.Reference(owner(d))},
			Annotations: map[string]string{
				revision.Annotation:        strconv.Itoa(number),
				revision.DesiredAnnotation: fmt.Sprint(replicasOf(d)),
				revision.MaxAnnotation:     fmt.Sprint(replicasOf(d) + surge),
			},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &size, Selector: revision.SelectorWithHash(d.Spec.Selector, hash),
			Template: revision.WithHash(&template, hash),
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: size, ReadyReplicas: available, AvailableReplicas: available, ObservedGeneration: 1,
			TerminatingReplicas: &none,
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// sized is for a ReplicaSet that was sized for another spec.replicas.
func sizedFor(replicas, most int32) func(*appsv1.ReplicaSet) {
	return func(set *appsv1.ReplicaSet) {
		set.Annotations[revision.DesiredAnnotation], set.Annotations[revision.MaxAnnotation] = fmt.Sprint(replicas),
			fmt.Sprint(most)
	}
}

// run decides twice over the same input and makes sure that it neither differs nor changes the input.
func run(t *testing.T, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) Plan {
	t.Helper()
	return runInput(t, Input{Now: now, Deployment: d, ReplicaSets: sets})
}

func runInput(t *testing.T, in Input) Plan {
	t.Helper()
	before := Input{Now: in.Now, Deployment: in.Deployment.DeepCopy(), Unfinished: maps.Clone(in.Unfinished)}
	for _, set := range in.ReplicaSets {
		before.ReplicaSets = append(before.ReplicaSets, set.DeepCopy())
	}
	plan, again := Decide(in), Decide(in)
	if !reflect.DeepEqual(plan, again) {
		t.Errorf("two decisions differ:\n%+v\n%+v", plan, again)
	}
	if !reflect.DeepEqual(in, before) {
		t.Error("the decision changed its input")
	}
	return plan
}

// sizes returns what each ReplicaSet is told to have, by the number of its image: new ones included, unchanged ones
// not.
func sizes(plan Plan) map[string]int32 {
	sizes := map[string]int32{}
	if plan.Create != nil {
		sizes[plan.Create.ReplicaSet.Spec.Template.Spec.Containers[0].Image] = sizeOf(plan.Create.ReplicaSet)
	}
	for _, update := range plan.Updates {
		if sizeOf(update.From) != sizeOf(update.To) {
			sizes[update.To.Spec.Template.Spec.Containers[0].Image] = sizeOf(update.To)
		}
	}
	return sizes
}

func progressOf(status appsv1.DeploymentStatus) appsv1.DeploymentCondition {
	if condition := conditions.Deployment.Find(status.Conditions, appsv1.DeploymentProgressing); condition != nil {
		return *condition
	}
	return appsv1.DeploymentCondition{}
}
