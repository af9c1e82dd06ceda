package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// checkPod returns what in the Pod and its containers is out of one of the ranges. Texts are the API's.
func checkPod(pod *corev1.Pod, ranges []*corev1.LimitRange) []error {
	var errs []error
	for _, item := range items(ranges) {
		switch item.Type {
		case corev1.LimitTypeContainer:
			for i := range pod.Spec.InitContainers {
				errs = append(errs, checkAmounts(item, of(&pod.Spec.InitContainers[i]))...)
			}
			for i := range pod.Spec.Containers {
				errs = append(errs, checkAmounts(item, of(&pod.Spec.Containers[i]))...)
			}
		case corev1.LimitTypePod:
			options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
			errs = append(errs, checkAmounts(item, amounts{
				requests: resourcehelper.PodRequests(pod, options), limits: resourcehelper.PodLimits(pod, options),
			})...)
		}
	}
	return errs
}

// checkClaim returns what is out of range of what the claim asks for. A claim has no limits.
func checkClaim(claim *corev1.PersistentVolumeClaim, ranges []*corev1.LimitRange) []error {
	var errs []error
	requests := claim.Spec.Resources.Requests
	for _, item := range items(ranges) {
		if item.Type != corev1.LimitTypePersistentVolumeClaim {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(item.Min)) {
			errs = append(errs, checkMin(item.Type, name, item.Min[name], amounts{requests: requests})...)
		}
		for _, name := range slices.Sorted(maps.Keys(item.Max)) {
			errs = append(errs, checkMaxRequest(item.Type, name, item.Max[name], requests)...)
		}
	}
	return errs
}

func items(ranges []*corev1.LimitRange) []*corev1.LimitRangeItem {
	var all []*corev1.LimitRangeItem
	for _, r := range ranges {
		for i := range r.Spec.Limits {
			all = append(all, &r.Spec.Limits[i])
		}
	}
	return all
}

// amounts are what a Pod or a container asks for.
type amounts struct{ requests, limits corev1.ResourceList }

func of(c *corev1.Container) amounts { return amounts{c.Resources.Requests, c.Resources.Limits} }

func checkAmounts(item *corev1.LimitRangeItem, asked amounts) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		errs = append(errs, checkMin(item.Type, name, item.Min[name], asked)...)
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		errs = append(errs, checkMax(item.Type, name, item.Max[name], asked)...)
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		errs = append(errs, checkRatio(item.Type, name, item.MaxLimitRequestRatio[name], asked)...)
	}
	return errs
}

func checkMin(kind corev1.LimitType, name corev1.ResourceName, least resource.Quantity, asked amounts) []error {
	request, requested := asked.requests[name]
	limit, limited := asked.limits[name]
	text := fmt.Sprintf("minimum %s usage per %s is %s", name, kind, least.String())
	switch {
	case !requested:
		return []error{fmt.Errorf("%s.  No request is specified", text)}
	case request.Cmp(least) < 0:
		return []error{fmt.Errorf("%s, but request is %s", text, request.String())}
	case limited && limit.Cmp(least) < 0:
		return []error{fmt.Errorf("%s, but limit is %s", text, limit.String())}
	}
	return nil
}

func checkMax(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity, asked amounts) []error {
	limit, limited := asked.limits[name]
	text := fmt.Sprintf("maximum %s usage per %s is %s", name, kind, most.String())
	switch {
	case !limited:
		return []error{fmt.Errorf("%s.  No limit is specified", text)}
	case limit.Cmp(most) > 0:
		return []error{fmt.Errorf("%s, but limit is %s", text, limit.String())}
	}
	if request, requested := asked.requests[name]; requested && request.Cmp(most) > 0 {
		return []error{fmt.Errorf("%s, but request is %s", text, request.String())}
	}
	return nil
}

func checkMaxRequest(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity,
	requests corev1.ResourceList) []error {
	request, requested := requests[name]
	text := fmt.Sprintf("maximum %s usage per %s is %s", name, kind, most.String())
	switch {
	case !requested:
		return []error{fmt.Errorf("%s.  No request is specified", text)}
	case request.Cmp(most) > 0:
		return []error{fmt.Errorf("%s, but request is %s", text, request.String())}
	}
	return nil
}

func checkRatio(kind corev1.LimitType, name corev1.ResourceName, most resource.Quantity, asked amounts) []error {
	request, limit := asked.requests[name], asked.limits[name]
	text := fmt.Sprintf("%s max limit to request ratio per %s is %s", name, kind, most.String())
	switch {
	case request.IsZero():
		return []error{fmt.Errorf("%s, but no request is specified or request is 0", text)}
	case limit.IsZero():
		return []error{fmt.Errorf("%s, but no limit is specified or limit is 0", text)}
	}
	if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > most.AsApproximateFloat64() {
		return []error{fmt.Errorf("%s, but provided ratio is %f", text, ratio)}
	}
	return nil
}
