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
	// Templates are those that the Pod names and that are there, by name.
	Templates map[string]*resourcev1.ResourceClaimTemplate
}

// Plan names every effect of one pass.
type Plan struct {
	// Create are the claims that are to be made.
	Create []NewClaim
	// Names are the claims that are there and that the Pod's status does not name yet, by the Pod's names for them.
	Names map[string]string
	// Missing are the templates that are not there.
	Missing []string
	// Leaving are claims of the Pod that are being deleted: others take their places when they are gone.
	Leaving []*resourcev1.ResourceClaim
	Events  []events.Event
}

// NewClaim is a claim, and the Pod's name for it.
type NewClaim struct {
	Name  string
	Claim *resourcev1.ResourceClaim
}

// Decide makes the claims that the Pod lacks. A claim that is not the Pod's is never used, whatever its status says.
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

// ownClaim is the Pod's claim for what it asks for: the one that its status names, else one that was made for it before
// the status said so, and one that stays before one that goes. If there are several of these, the first by name.
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

// needsClaims reports whether there is anything to decide about a Pod: one that has ended or is being deleted gets no
// claim.
func needsClaims(pod *corev1.Pod) bool {
	return podview.IsActive(pod) && slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimTemplateName != nil
	})
}

// newClaim is a claim as the template says. It is the Pod's, and goes with it.
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

// maxBase is how long the beginning of a name may be to which the apiserver adds five characters and cuts nothing off.
const maxBase = 58

// nameBase is what a claim's name begins with. Of names that are too long both keep their share.
func nameBase(pod, asked string) string {
	const room = maxBase - len("--")
	if all := len(pod) + len(asked); all > room {
		pod, asked = cut(pod, len(pod)*room/all), cut(asked, len(asked)*room/all)
	}
	return pod + "-" + asked + "-"
}

// cut shortens a name to one that another may follow.
func cut(name string, length int) string { return strings.TrimRight(name[:length], "-.") }
