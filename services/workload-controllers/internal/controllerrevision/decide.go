// Package controllerrevision keeps the history of an owner's Pod template in ControllerRevisions: which of them stands
// for which template, under which number and name, and which are one too many. Every kind of owner has it the same way.
//
//	decide.go  what the history needs, from what was observed (pure)
//	text.go    what a revision remembers of a template, worked out once for each template
//	writer.go  doing it
package controllerrevision

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// HashLabel distinguishes the revisions of an owner; its Pods carry it, too.
const HashLabel = appsv1.ControllerRevisionHashLabelKey

// maxPrefix is how much of its owner's name a revision's name begins with, so that it is never too long;
// maxLabelPrefix is the same for a name that is the value of a label.
const (
	maxPrefix      = 223
	maxLabelPrefix = 52
)

// In is what is known of an owner's history. Decide changes none of it.
type In struct {
	Owner claim.Owner
	// Template is the owner's present one.
	Template *corev1.PodTemplateSpec
	// Text is that of the template, if it is known already.
	Text *Text
	// Annotations are the owner's. A new revision gets them: kubectl shows the cause of a change from there.
	Annotations map[string]string
	// NameIsLabel says that the owner's Pods carry the revision's name as a label.
	NameIsLabel bool
	// Collisions is the owner's status.collisionCount.
	Collisions *int32
	// Revisions are those of the owner's namespace that it may own: with its controller reference, or without a
	// controller. More do no harm.
	Revisions []*appsv1.ControllerRevision
}

// Plan is what the history needs.
type Plan struct {
	// Claims are revisions to adopt or release. A plan that has some has nothing else.
	Claims claim.Claims[*appsv1.ControllerRevision]
	// Create is the revision of the template to make; nil when there is one.
	Create *appsv1.ControllerRevision
	// Renumber is the template's revision with the number that it has to get, because another came after it; or nil.
	Renumber *appsv1.ControllerRevision
	// Current is the revision of the template. It is Create or Renumber where there is one.
	Current *appsv1.ControllerRevision
	// Alike are the hashes of all revisions that remember the template: the Pods of any of them are up to date.
	Alike []string
	// Old are the others, and duplicates of Current, the lowest number first.
	Old []*appsv1.ControllerRevision
}

// Decide says what the history of an owner needs.
func Decide(in In) Plan {
	claims := claim.Decide(in.Owner, in.Revisions)
	if !claims.Settled() {
		return Plan{Claims: claims}
	}
	plan := Plan{Old: slices.SortedFunc(slices.Values(claims.Owned), byNumber)}
	text := in.Text
	if text == nil {
		text = textOf(in.Template)
	}
	for at, r := range plan.Old {
		if text.isIn(r) {
			plan.Alike = append(plan.Alike, r.Labels[HashLabel])
			plan.Current = plan.Old[at]
		}
	}
	if plan.Current == nil {
		plan.Create = create(in, text.data, highest(plan.Old)+1)
		plan.Current, plan.Alike = plan.Create, []string{plan.Create.Labels[HashLabel]}
		return plan
	}
	plan.Old = slices.DeleteFunc(plan.Old, func(r *appsv1.ControllerRevision) bool { return r == plan.Current })
	if number := highest(plan.Old); plan.Current.Revision <= number {
		plan.Renumber = plan.Current.DeepCopy()
		plan.Renumber.Revision = number + 1
		plan.Current = plan.Renumber
	}
	return plan
}

// Surplus returns the old revisions beyond the limit, the lowest number first. Those in use neither count nor go; a
// nil limit keeps all.
func Surplus(
	old []*appsv1.ControllerRevision, limit *int32, inUse func(*appsv1.ControllerRevision) bool,
) []*appsv1.ControllerRevision {
	if limit == nil || *limit == math.MaxInt32 || len(old) <= int(*limit) {
		return nil
	}
	idle := slices.DeleteFunc(slices.Clone(old), func(r *appsv1.ControllerRevision) bool {
		return r.DeletionTimestamp != nil || inUse(r)
	})
	return idle[:max(0, len(idle)-int(*limit))]
}

// Template returns the Pod template that a revision remembers.
func Template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("reading data of ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	if data.Spec.Template == nil {
		return nil, fmt.Errorf("data of ControllerRevision %s/%s has no spec.template", r.Namespace, r.Name)
	}
	return data.Spec.Template, nil
}

// AfterCollision returns the owner's status.collisionCount when a new revision's name belonged to another object: the
// next pass finds another name.
func AfterCollision(count *int32) *int32 {
	next := int32(1)
	if count != nil {
		next = *count + 1
	}
	return &next
}

func create(in In, data []byte, number int64) *appsv1.ControllerRevision {
	hash := revision.Hash(in.Template, in.Collisions)
	labels := map[string]string{}
	maps.Copy(labels, in.Template.Labels)
	labels[HashLabel] = hash
	annotations := maps.Clone(in.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	most := maxPrefix
	if in.NameIsLabel {
		most = maxLabelPrefix
	}
	prefix := strings.TrimRight(in.Owner.Name[:min(most, len(in.Owner.Name))], ".-")
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Owner.Namespace, Name: prefix + "-" + hash, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{claim.Reference(in.Owner)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}

// byNumber orders revisions; among equal numbers the older one is the lower.
func byNumber(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), revision.ByAge(a, b))
}

func highest(sorted []*appsv1.ControllerRevision) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1].Revision
}

// isSame reports whether an object that has the name of a planned revision is that revision, made by an earlier pass
// that the cache does not show yet. Anything else is a collision.
func isSame(planned, existing *appsv1.ControllerRevision) bool {
	mine, its := metav1.GetControllerOfNoCopy(planned), metav1.GetControllerOfNoCopy(existing)
	return its != nil && its.UID == mine.UID && remembers(existing, planned.Data.Raw)
}
