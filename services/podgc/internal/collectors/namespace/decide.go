// Package namespace empties a namespace that is being deleted and then lets it go: Pods first, so that what they use
// outlives them, then everything else.
package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
)

// Bounds of the time between two looks at a namespace that is not empty yet.
const (
	lookAgainFirst = 200 * time.Millisecond
	lookAgainMax   = 10 * time.Second
)

// Content is what is left of one resource.
type Content struct {
	// Resource is "resource" or "resource.group", as users name it.
	Resource string
	Count    int
	// Finalizers counts the objects that hold each finalizer.
	Finalizers map[string]int
}

// Input is what a decision about one namespace builds on. Nothing in it is changed.
type Input struct {
	Namespace *corev1.Namespace
	// Undiscovered names the groups whose resources could not be read.
	Undiscovered []string
	// Failures are errors of deleting or listing.
	Failures []string
	// Remaining is what is left after deletions were asked for.
	Remaining []Content
	Now       time.Time
}

// Plan is what to do with the namespace.
type Plan struct {
	// Conditions are the new conditions; nil leaves them alone.
	Conditions []corev1.NamespaceCondition
	// Finalize lets the namespace go.
	Finalize bool
	// LookAgain is when to look again; 0 means never.
	LookAgain time.Duration
}

// NeedsWork reports whether the namespace is being deleted and still waits for this collector.
func NeedsWork(ns *corev1.Namespace) bool {
	return ns.DeletionTimestamp != nil && slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// Decide plans what to do with a namespace after one pass of deletions. It is let go only when everything in it is
// known to be gone.
func Decide(in Input) Plan {
	if len(in.Undiscovered)+len(in.Failures)+len(in.Remaining) == 0 {
		return Plan{Finalize: true}
	}
	plan := Plan{LookAgain: lookAgain(in.Now.Sub(in.Namespace.DeletionTimestamp.Time))}
	list := in.Namespace.Status.Conditions
	for _, c := range describe(in) {
		next, changed := conditions.Namespace.Set(list, c, in.Now)
		if list = next; changed {
			plan.Conditions = list
		}
	}
	return plan
}

// lookAgain grows with how long the namespace has been waiting, so that a stuck one costs little.
func lookAgain(waiting time.Duration) time.Duration {
	return min(max(waiting/4, lookAgainFirst), lookAgainMax)
}

func describe(in Input) []corev1.NamespaceCondition {
	return []corev1.NamespaceCondition{
		verdict(corev1.NamespaceDeletionDiscoveryFailure, len(in.Undiscovered) > 0,
			"DiscoveryFailed", "Discovery failed for some groups: "+strings.Join(in.Undiscovered, ", "),
			"ResourcesDiscovered", "All resources successfully discovered"),
		verdict(corev1.NamespaceDeletionContentFailure, len(in.Failures) > 0,
			"ContentDeletionFailed", "Failed to delete all resource types, "+fmt.Sprint(len(in.Failures))+
				" remaining: "+strings.Join(in.Failures, "; "),
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		verdict(corev1.NamespaceContentRemaining, len(in.Remaining) > 0,
			"SomeResourcesRemain", "Some resources are remaining: "+remaining(in.Remaining),
			"ContentRemoved", "All content successfully removed"),
		verdict(corev1.NamespaceFinalizersRemaining, finalizers(in.Remaining) != "",
			"SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+finalizers(in.Remaining),
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
}

func verdict(kind corev1.NamespaceConditionType, bad bool, badReason, badMessage, goodReason,
	goodMessage string) corev1.NamespaceCondition {
	if bad {
		return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Reason: badReason,
			Message: badMessage}
	}
	return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: goodReason,
		Message: goodMessage}
}

func remaining(contents []Content) string {
	var parts []string
	for _, c := range contents {
		parts = append(parts, fmt.Sprintf("%s has %d resource instances", c.Resource, c.Count))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func finalizers(contents []Content) string {
	total := map[string]int{}
	for _, c := range contents {
		for name, count := range c.Finalizers {
			total[name] += count
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(total)) {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", name, total[name]))
	}
	return strings.Join(parts, ", ")
}
