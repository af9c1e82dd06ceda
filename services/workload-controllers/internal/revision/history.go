package revision

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that kubectl and this service share.
const (
	// Annotation holds a revision's number, on the Deployment and on each of its ReplicaSets.
	Annotation = "deployment.kubernetes.io/revision"
	// HistoryAnnotation holds the numbers that a ReplicaSet had before, oldest first, with commas between.
	HistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredAnnotation holds the Deployment's spec.replicas when the ReplicaSet was last sized.
	DesiredAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxAnnotation holds the most replicas that the Deployment allowed then, the surge included.
	MaxAnnotation = "deployment.kubernetes.io/max-replicas"
)

// Annotations that are ours, about going back when a rollout has failed.
const (
	// OnFailureAnnotation asks for it, on the Deployment and with the value "true".
	OnFailureAnnotation = "keelson.dev/rollback-on-failure"
	// CompleteAnnotation marks the ReplicaSets that a rollout was once complete with, while it was asked for.
	CompleteAnnotation = "keelson.dev/complete"
	// FailedAnnotation names on the Deployment the ReplicaSets that it went back from, the latest first, with commas
	// between, and RestoredAnnotation the one that it last went back to.
	FailedAnnotation   = "keelson.dev/rolled-back-from"
	RestoredAnnotation = "keelson.dev/rolled-back-to"
)

// maxHistoryBytes bounds HistoryAnnotation; the oldest numbers give way.
const maxHistoryBytes = 2000

// ownAnnotations are never copied between a Deployment and its ReplicaSets.
var ownAnnotations = []string{
	corev1.LastAppliedConfigAnnotation, Annotation, HistoryAnnotation, DesiredAnnotation, MaxAnnotation,
	appsv1.DeprecatedRollbackTo, OnFailureAnnotation, CompleteAnnotation, FailedAnnotation, RestoredAnnotation,
}

// Of returns the revision that an object's annotation gives; 0 without a readable one.
func Of(object metav1.Object) int64 {
	number, err := strconv.ParseInt(object.GetAnnotations()[Annotation], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Find returns the ReplicaSet of the template: the oldest whose template is the same, or nil.
func Find(template *corev1.PodTemplateSpec, sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	var found *appsv1.ReplicaSet
	for _, set := range sets {
		if (found == nil || ByAge(set, found) < 0) && SameTemplate(template, &set.Spec.Template) {
			found = set
		}
	}
	return found
}

// ByAge orders objects by age, the oldest first; names decide between equals.
func ByAge[O metav1.Object](a, b O) int {
	created, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(created.Compare(other.Time), strings.Compare(a.GetName(), b.GetName()))
}

// Highest returns the highest revision among the ReplicaSets; 0 when there is none.
func Highest(sets []*appsv1.ReplicaSet) int64 {
	var highest int64
	for _, set := range sets {
		highest = max(highest, Of(set))
	}
	return highest
}

// Previous returns the second highest revision among the ReplicaSets: where a rollback without a number goes. It is 0
// when there are fewer than two.
func Previous(sets []*appsv1.ReplicaSet) int64 {
	var highest, second int64
	for _, set := range sets {
		switch number := Of(set); {
		case number > highest:
			highest, second = number, highest
		case number < highest:
			second = max(second, number)
		}
	}
	return second
}

// Annotations returns what the annotations of the current revision's ReplicaSet must be: those it has, the
// Deployment's copied over them, and its revision, which moves its former number to the history.
func Annotations(deployment, current map[string]string, number int64) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, current)
	for key, value := range deployment {
		if !slices.Contains(ownAnnotations, key) {
			annotations[key] = value
		}
	}
	former := current[Annotation]
	if next := strconv.FormatInt(number, 10); former != next {
		annotations[Annotation] = next
		if former != "" {
			annotations[HistoryAnnotation] = appendHistory(current[HistoryAnnotation], former)
		}
	}
	return annotations
}

// RollbackAnnotations returns a Deployment's annotations after going back to a ReplicaSet's revision: the revision's
// own, with those about the Deployment itself kept.
func RollbackAnnotations(deployment, set map[string]string) map[string]string {
	annotations := map[string]string{}
	for key, value := range set {
		if !slices.Contains(ownAnnotations, key) {
			annotations[key] = value
		}
	}
	for _, key := range ownAnnotations {
		if value, ok := deployment[key]; ok && key != appsv1.DeprecatedRollbackTo {
			annotations[key] = value
		}
	}
	return annotations
}

func appendHistory(history, number string) string {
	if history == "" {
		return number
	}
	numbers := strings.Split(history, ",")
	if slices.Contains(numbers, number) {
		return history
	}
	history += "," + number
	for len(history) > maxHistoryBytes {
		_, history, _ = strings.Cut(history, ",")
	}
	return history
}
