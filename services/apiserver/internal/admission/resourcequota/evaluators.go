package resourcequota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	libraryquota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/kit/quota"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// evaluators are those of the kinds of which more counts than their number, or that quotas call by a short name. For
// any other kind the library counts objects.
func evaluators() []libraryquota.Evaluator {
	all := []libraryquota.Evaluator{
		evaluator[*corev1.Pod]{kind: quota.Pods, handles: podrequest.Sizes, constraints: unsaid,
			scopes: quota.PodScopes,
			usage:  func(pod *corev1.Pod) corev1.ResourceList { return podUsage(pod, time.Now()) }},
		evaluator[*corev1.Service]{kind: quota.Services, handles: chargesChanges, usage: quota.Service},
		evaluator[*corev1.PersistentVolumeClaim]{kind: quota.Claims, handles: chargesClaim, usage: quota.Claim,
			scopes: quota.ClaimScopes},
		evaluator[*resourcev1.ResourceClaim]{kind: quota.Devices, handles: chargesChanges, usage: quota.ResourceClaim},
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceConfigMaps, corev1.ResourceSecrets,
		corev1.ResourceReplicationControllers, corev1.ResourceQuotas} {
		all = append(all, generic.NewObjectCountEvaluator(corev1.Resource(string(name)), nil, name))
	}
	return all
}

func chargesChanges(a admission.Attributes) bool { return a.GetSubresource() == "" }

// chargesClaim: also what a claim is promised counts, which its status says.
func chargesClaim(a admission.Attributes) bool {
	return a.GetSubresource() == "" || a.GetSubresource() == "status" && a.GetOperation() == admission.Update
}

// podUsage counts what the Pod asks for altogether: of containers, init containers and sidecars, of the Pod itself and
// its overhead, and what it still has of before a resize.
func podUsage(pod *corev1.Pod, now time.Time) corev1.ResourceList {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	return quota.Pod(resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options),
		quota.HasEnded(pod, now))
}

// needed are what every container has to say if a quota bounds it.
var needed = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU,
	corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory}

// unsaid tells which containers leave out what a quota bounds. A Pod that says it for all its containers may.
func unsaid(bounded []corev1.ResourceName, pod *corev1.Pod) error {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	missing := map[corev1.ResourceName][]string{}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		usage := quota.Pod(c.Resources.Requests, c.Resources.Limits, false)
		for _, name := range bounded {
			if _, said := usage[name]; !said && slices.Contains(needed, name) && !slices.Contains(missing[name],
				c.Name) {
				missing[name] = append(missing[name], c.Name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		texts = append(texts, fmt.Sprintf("%s for: %s", name, strings.Join(slices.Sorted(slices.Values(missing[name])),
			",")))
	}
	return errors.New("must specify " + strings.Join(texts, "; "))
}

// evaluator tells the library what quotas count of one kind.
type evaluator[O runtime.Object] struct {
	kind schema.GroupResource
	// handles recognises the requests that say what an object takes.
	handles     func(admission.Attributes) bool
	usage       func(O) corev1.ResourceList
	constraints func(bounded []corev1.ResourceName, object O) error // nil where there are none
	scopes      func(O) quota.Scopes                                // nil for objects that are in no scope
}

// GroupResource implements Evaluator.
func (e evaluator[O]) GroupResource() schema.GroupResource { return e.kind }

// Handles implements Evaluator. Of an update that moves an object the library charges the quotas that count it from
// then on for all that it takes.
func (e evaluator[O]) Handles(a admission.Attributes) bool { return e.handles(a) || e.moves(a) }

// moves reports whether a request changes the scopes of an existing object, so that other quotas count it.
func (e evaluator[O]) moves(a admission.Attributes) bool {
	if a.GetOperation() != admission.Update {
		return false
	}
	before, err := e.scopesOf(a.GetOldObject())
	if err != nil {
		return false // the request is about a subresource of another kind
	}
	after, err := e.scopesOf(a.GetObject())
	return err == nil && before != after
}

// Constraints implements Evaluator.
func (e evaluator[O]) Constraints(bounded []corev1.ResourceName, item runtime.Object) error {
	object, err := as[O](item)
	if err != nil || e.constraints == nil {
		return err
	}
	return e.constraints(bounded, object)
}

// Matches implements Evaluator.
func (e evaluator[O]) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	scopes, err := e.scopesOf(item)
	return err == nil && len(e.MatchingResources(libraryquota.ResourceNames(q.Status.Hard))) > 0 && scopes.In(&q.Spec),
		err
}

// MatchingScopes implements Evaluator.
func (e evaluator[O]) MatchingScopes(item runtime.Object, requirements []corev1.ScopedResourceSelectorRequirement,
) ([]corev1.ScopedResourceSelectorRequirement, error) {
	scopes, err := e.scopesOf(item)
	return slices.DeleteFunc(slices.Clone(requirements), func(r corev1.ScopedResourceSelectorRequirement) bool {
		return !scopes.Meets(r)
	}), err
}

// uncovered is the error about limited scopes of which no quota bounds the object.
type uncovered []corev1.ScopedResourceSelectorRequirement

// Error implements error.
func (u uncovered) Error() string {
	return fmt.Sprintf("insufficient quota to match these scopes: %v", []corev1.ScopedResourceSelectorRequirement(u))
}

// UncoveredQuotaScopes implements Evaluator: a limited scope is open to what a quota of that scope bounds. The library
// does not make a refusal of what is left, so it is an error at once.
func (evaluator[O]) UncoveredQuotaScopes(limited, bounded []corev1.ScopedResourceSelectorRequirement,
) ([]corev1.ScopedResourceSelectorRequirement, error) {
	left := slices.DeleteFunc(slices.Clone(limited), func(r corev1.ScopedResourceSelectorRequirement) bool {
		return slices.ContainsFunc(bounded, func(by corev1.ScopedResourceSelectorRequirement) bool {
			return by.ScopeName == r.ScopeName
		})
	})
	if len(left) > 0 {
		return left, uncovered(left)
	}
	return nil, nil
}

// MatchingResources implements Evaluator.
func (e evaluator[O]) MatchingResources(names []corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool {
		kind, ok := quota.Kind(name)
		return !ok || kind != e.kind
	})
}

// Usage implements Evaluator.
func (e evaluator[O]) Usage(item runtime.Object) (corev1.ResourceList, error) {
	object, err := as[O](item)
	if err != nil {
		return nil, err
	}
	return e.usage(object), nil
}

// UsageStats implements Evaluator. What all objects take is counted by the controller of the quotas' status.
func (evaluator[O]) UsageStats(libraryquota.UsageStatsOptions) (libraryquota.UsageStats, error) {
	return libraryquota.UsageStats{}, errors.New("admission does not count what is there")
}

func (e evaluator[O]) scopesOf(item runtime.Object) (quota.Scopes, error) {
	object, err := as[O](item)
	if err != nil || e.scopes == nil {
		return quota.Scopes{}, err
	}
	return e.scopes(object), nil
}

func as[O runtime.Object](item runtime.Object) (O, error) {
	object, ok := item.(O)
	if !ok {
		return object, fmt.Errorf("expected a %T, got %T", object, item)
	}
	return object, nil
}
