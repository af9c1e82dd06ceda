package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestValidateResources(t *testing.T) {
	resources := func(requests, limits corev1.ResourceList) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) {
			c.Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
		})
	}
	const at = "spec.containers[0].resources"
	runAll(t, []row{
		{name: "all kinds", change: resources(quantities("cpu", "250m", "memory", "64Mi", "ephemeral-storage", "1Gi"),
			quantities("cpu", "1", "hugepages-2Mi", "4Mi", "example.com/gpu", "2"))},
		{name: "requests above limits", change: resources(quantities("cpu", "2"), quantities("cpu", "1")),
			want: []string{at + `.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`}},
		{name: "negative", change: resources(quantities("cpu", "-1"), quantities("memory", "-1")), want: []string{
			at + `.limits[memory]: Invalid value: "-1": must be greater than or equal to 0`,
			at + `.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
			at + `.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`}},
		{name: "no resource of containers", change: resources(quantities("pods", "1"), nil),
			want: []string{at + `.requests[pods]: Invalid value: "pods": must be a standard resource for containers`}},
		{name: "malformed name", change: resources(quantities("a b", "1"), nil), want: []string{
			at +
				`.requests[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{name: "name of a quota", change: resources(quantities("requests.example.com/gpu", "1"),
			quantities("requests.example.com/gpu", "1")), want: []string{
			at +
				`.limits[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn't follow extended resource name standard`,
			at +
				`.requests[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn't follow extended resource name standard`}},
		{name: "half a device", change: resources(nil, quantities("example.com/gpu", "500m")), want: []string{
			at + `.limits[example.com/gpu]: Invalid value: "500m": must be an integer`,
			at + `.requests[example.com/gpu]: Invalid value: "500m": must be an integer`}},
		{name: "devices without a limit", change: resources(quantities("example.com/gpu", "1"), nil),
			want: []string{at + `.limits: Required value: Limit must be set for non overcommitable resources`}},
		{name: "fewer devices than the limit", change: resources(quantities("example.com/gpu", "1"),
			quantities("example.com/gpu", "2")),
			want: []string{at + `.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2`}},
		{name: "huge pages alone", change: resources(nil, quantities("hugepages-2Mi", "2Mi")),
			want: []string{at + `: Forbidden: HugePages require cpu or memory`}},
		{name: "half a huge page", change: resources(nil, quantities("cpu", "1", "hugepages-2Mi", "1Mi")),
			want: []string{
				at + `.limits[hugepages-2Mi]: Invalid value: "1Mi": must be an integer multiple of page size`,
				at + `.requests[hugepages-2Mi]: Invalid value: "1Mi": must be an integer multiple of page size`}},
		{name: "overhead", change: func(s *corev1.PodSpec) { s.Overhead = quantities("cpu", "-1", "pods", "1") },
			want: []string{
				`spec.overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
				`spec.overhead[pods]: Invalid value: "pods": must be a standard resource for containers`}},
	})
}

func TestValidatePodResources(t *testing.T) {
	pod := func(requests, limits corev1.ResourceList) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
		}
	}
	runAll(t, []row{
		{name: "for the Pod as a whole", change: pod(quantities("cpu", "1"), quantities("memory", "1Gi"))},
		{name: "another resource", change: pod(quantities("ephemeral-storage", "1"), nil),
			want: []string{
				`spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"`,
			}},
		{name: "less than the containers request", change: func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = quantities("cpu", "2")
			pod(quantities("cpu", "1"), nil)(s)
		},
			want: []string{
				`spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2`,
			}},
		{name: "less than a container's limit", change: func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Limits: quantities("cpu", "2"),
				Requests: quantities("cpu", "1")}
			pod(nil, quantities("cpu", "1"))(s)
		},
			want: []string{
				`spec.containers[0].resources.limits[cpu]: Invalid value: "2": must be less than or equal to pod limits of 1`,
			}},
		{name: "claims", change: func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "a"}}}
		},
			want: []string{`spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level`}},
		{name: "on Windows", change: func(s *corev1.PodSpec) {
			pod(quantities("cpu", "1"), nil)(s)
			s.OS = &corev1.PodOS{Name: corev1.Windows}
		}, want: []string{`spec.resources: Forbidden: may not be set for a windows pod`}},
	})
}

func TestValidateResourceClaims(t *testing.T) {
	claims := func(uses []corev1.ResourceClaim, claims ...corev1.PodResourceClaim) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.ResourceClaims, s.Containers[0].Resources.Claims = claims, uses }
	}
	const at = "spec.containers[0].resources.claims"
	runAll(t, []row{
		{name: "a claim in use", change: claims([]corev1.ResourceClaim{{Name: "a", Request: "r"},
			{Name: "a", Request: "q"}}, corev1.PodResourceClaim{Name: "a", ResourceClaimName: ptr.To("n")})},
		{name: "unknown claim", change: claims([]corev1.ResourceClaim{{Name: "a"}}),
			want: []string{at + `[0].name: Not found: "a"`}},
		{name: "no name", change: claims([]corev1.ResourceClaim{{}}), want: []string{at + `[0].name: Required value`}},
		{name: "whole and in part", change: claims([]corev1.ResourceClaim{{Name: "a"}, {Name: "a", Request: "r"}},
			corev1.PodResourceClaim{Name: "a", ResourceClaimTemplateName: ptr.To("n")}),
			want: []string{at + `[1]: Duplicate value: "a"`}},
		{name: "claims wrong in every way", change: claims(nil, corev1.PodResourceClaim{Name: "a"},
			corev1.PodResourceClaim{Name: "a", ResourceClaimName: ptr.To("n"), ResourceClaimTemplateName: ptr.To("n")},
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("n")}),
			want: []string{
				"spec.resourceClaims[0]: Invalid value: \"a\": must specify one of: `resourceClaimName`, " +
					"`resourceClaimTemplateName`",
				`spec.resourceClaims[1].name: Duplicate value: "a"`,
				"spec.resourceClaims[1]: Invalid value: \"a\": at most one of `resourceClaimName` or " +
					"`resourceClaimTemplateName` may be specified",
				`spec.resourceClaims[2].name: Required value`}},
	})
}
