package resourceclaim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

// Input is all that a decision about a Pod depends on. Decide changes none of it.
type Input struct {
	Pod *corev1.Pod
	// Own are the claims that the Pod controls.
	Own []*resourcev1.ResourceClaim
	// Templates are the existing templates that the Pod names, by name.
	Templates map[string]*resourcev1.ResourceClaimTemplate
}

// Plan names every effect of one pass.
type Plan struct {
	// Create are the claims to create.
	Create []NewClaim
	// Names are the existing claims that the Pod's status does not name yet, by the Pod's names for them.
	Names map[string]string
	// Missing are the templates that do not exist.
	Missing []string
	// Leaving are claims of the Pod that are being deleted: they are replaced once they are gone.
	Leaving []*resourcev1.ResourceClaim
	Events  []events.Event
}

// NewClaim is a claim, and the Pod's name for it.
type NewClaim struct {
	Name  string
	Claim *resourcev1.ResourceClaim
}

// Decide plans the claims that the Pod lacks. A claim that the Pod does not control is never used, whatever the
// Pod's status says.
func Decide(in Input) Plan {
	plan := Plan{Names: map[string]string{}}
	for i := range in.Pod.Spec.ResourceClaims {
		asked := &in.Pod.Spec.ResourceClaims[i]
		name, known := podview.ResourceClaimOf(in.Pod, asked)
		if asked.ResourceClaimTemplateName == nil || known && name == "" {
			continue
		}
		switch claim := ownClaim(in.Own, asked.Name, name); {
		case claim != nil && claim.DeletionTimestamp != nil:
			plan.Leaving = append(plan.Leaving, claim)
		case claim != nil && claim.Name == name:
		case claim != nil:
			plan.Names[asked.Name] = claim.Name
		case in.Templates[*asked.ResourceClaimTemplateName] == nil:
			plan.Missing = append(plan.Missing, *asked.ResourceClaimTemplateName)
			plan.Events = append(plan.Events, noTemplate(asked))
		default:
			plan.Create = append(plan.Create, NewClaim{asked.Name, newClaim(in.Pod, asked.Name,
				in.Templates[*asked.ResourceClaimTemplateName])})
		}
	}
	return plan
}

// ownClaim returns the Pod's own claim for one of its requests: the one that its status names, else one that was
// created for it earlier, preferring one that is not being deleted. Of several it returns the first by name.
func ownClaim(own []*resourcev1.ResourceClaim, asked, named string) *resourcev1.ResourceClaim {
	rank := func(claim *resourcev1.ResourceClaim) int {
		switch {
		case claim.DeletionTimestamp != nil:
			return 2
		case claim.Name != named:
			return 1
		}
		return 0
	}
	var found *resourcev1.ResourceClaim
	for _, claim := range own {
		if claim.Name != named && claim.Annotations[resourcev1.PodResourceClaimAnnotation] != asked {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(rank(claim), rank(found)), strings.Compare(claim.Name, found.Name)) < 0 {
			found = claim
		}
	}
	return found
}

// needsClaims reports whether a decision about the Pod is needed: a Pod that has ended or is being deleted gets no
// claims.
func needsClaims(pod *corev1.Pod) bool {
	return podview.IsActive(pod) && slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimTemplateName != nil
	})
}

// newClaim returns a claim made from the template. The Pod owns it, and it is deleted with the Pod.
func newClaim(pod *corev1.Pod, asked string, template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	annotations := map[string]string{}
	maps.Copy(annotations, template.Spec.Annotations)
	annotations[resourcev1.PodResourceClaimAnnotation] = asked
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: nameBase(pod.Name, asked), Labels: maps.Clone(template.Spec.Labels),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, podKind)},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// maxBase is the longest generateName that the apiserver does not truncate; it appends five characters.
const maxBase = 58

// nameBase is what a claim's name begins with. Of names that are too long both keep their share.
func nameBase(pod, asked string) string {
	const room = maxBase - len("--")
	if all := len(pod) + len(asked); all > room {
		pod, asked = cut(pod, len(pod)*room/all), cut(asked, len(asked)*room/all)
	}
	return pod + "-" + asked + "-"
}

// cut shortens a name so that another may follow.
func cut(name string, length int) string { return strings.TrimRight(name[:length], "-.") }
