package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func resourcesOf(requests, limits corev1.ResourceList) func(*corev1.PodSpec) {
	return first(func(c *corev1.Container) {
		c.Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	})
}

// Which names a container may ask for, and in what amounts.
func TestResourceNames(t *testing.T) {
	const at = "spec.containers[0].resources"
	const extended = "doesn't follow extended resource name standard"
	const pages = "must be an integer multiple of page size"
	both := func(name, amount string) func(*corev1.PodSpec) {
		return resourcesOf(quantities(name, amount, "cpu", "1"), quantities(name, amount, "cpu", "1"))
	}
	refused := func(name, value, message string) []string {
		return []string{at + ".limits[" + name + `]: Invalid value: "` + value + `": ` + message,
			at + ".requests[" + name + `]: Invalid value: "` + value + `": ` + message}
	}
	runAll(t, []row{
		{name: "no cpu at all", change: resourcesOf(quantities("cpu", "0"), quantities("cpu", "0"))},
		{name: "a domain of the API's", change: both("kubernetes.io/a", "1500m")},
		{name: "a domain below the API's", change: both("a.kubernetes.io/a", "1500m")},
		{name: "a vendor's domain", change: both("example.com/a", "3")},
		{name: "a thousandth of a device", change: both("example.com/a", "1001m"),
			want: refused("example.com/a", "1001m", "must be an integer")},
		{name: "the longest vendor's domain", change: both(strings.Repeat("a.", 121)+"aa/b", "1")},
		{name: "a vendor's domain too long for a quota", change: both(strings.Repeat("a.", 122)+"a/b", "1"),
			want: refused(strings.Repeat("a.", 122)+"a/b", strings.Repeat("a.", 122)+"a/b", extended)},
		{name: "a vendor's quota", change: both("requests.a/b", "1"),
			want: refused("requests.a/b", "requests.a/b", extended)},
		{name: "a quota's name without a domain", change: both("requests.cpu", "1"),
			want: refused("requests.cpu", "requests.cpu", "must be a standard resource for containers")},
		{name: "whole huge pages", change: both("hugepages-1Gi", "2Gi")},
		{name: "one byte too many", change: both("hugepages-2Mi", "2097153"),
			want: refused("hugepages-2Mi", "2097153", pages)},
		{name: "huge pages of no size", change: both("hugepages-0", "1"), want: refused("hugepages-0", "1", pages)},
		{name: "huge pages of a negative size", change: both("hugepages--1", "1"),
			want: refused("hugepages--1", "1", pages)},
		{name: "huge pages of a size that is none", change: both("hugepages-x", "1"),
			want: refused("hugepages-x", "1", pages)},
		{name: "huge pages with memory alone", change: resourcesOf(nil, quantities("hugepages-2Mi", "2Mi",
			"memory", "1Mi"))},
		{name: "huge pages with storage alone", change: resourcesOf(nil, quantities("hugepages-2Mi", "2Mi",
			"ephemeral-storage", "1Mi")), want: []string{at + `: Forbidden: HugePages require cpu or memory`}},
		{name: "requested huge pages alone", change: resourcesOf(quantities("hugepages-2Mi", "2Mi"), nil),
			want: []string{at + `: Forbidden: HugePages require cpu or memory`,
				at + `.limits: Required value: Limit must be set for non overcommitable resources`}},
		{name: "overhead of a vendor's", change: func(s *corev1.PodSpec) {
			s.Overhead = quantities("example.com/a", "500m", "memory", "0")
		}, want: []string{`spec.overhead[example.com/a]: Invalid value: "500m": must be an integer`}},
	})
}

// A request lies at or below its limit, or is the limit where nothing can be overcommitted.
func TestRequestsBesideLimits(t *testing.T) {
	const at = "spec.containers[0].resources"
	runAll(t, []row{
		{name: "equal", change: resourcesOf(quantities("cpu", "1"), quantities("cpu", "1000m"))},
		{name: "a thousandth above", change: resourcesOf(quantities("cpu", "1001m"), quantities("cpu", "1")),
			want: []string{at + `.requests: Invalid value: "1001m": must be less than or equal to cpu limit of 1`}},
		{name: "a vendor's above", change: resourcesOf(quantities("example.com/a", "3"),
			quantities("example.com/a", "2")),
			want: []string{at + `.requests: Invalid value: "3": must be equal to example.com/a limit of 2`}},
		{name: "a vendor's, equal", change: resourcesOf(quantities("example.com/a", "2"),
			quantities("example.com/a", "2"))},
		{name: "fewer huge pages", change: resourcesOf(quantities("cpu", "1", "hugepages-2Mi", "2Mi"),
			quantities("hugepages-2Mi", "4Mi")),
			want: []string{at + `.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi`}},
		{name: "the API's own domain below", change: resourcesOf(quantities("kubernetes.io/a", "1"),
			quantities("kubernetes.io/a", "2"))},
		{name: "the API's own domain without a limit", change: resourcesOf(quantities("kubernetes.io/a", "1"), nil)},
	})
}

// What the Pod has as a whole covers what its containers ask for.
func TestPodResourceBounds(t *testing.T) {
	pod := func(requests, limits, container corev1.ResourceList) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
			s.Containers[0].Resources.Requests = container
		}
	}
	const at = "spec.resources"
	runAll(t, []row{
		{name: "exactly the containers' requests", change: pod(quantities("cpu", "1"), nil, quantities("cpu", "1"))},
		{name: "a thousandth less", change: pod(quantities("cpu", "999m"), nil, quantities("cpu", "1")),
			want: []string{at +
				`.requests[cpu]: Invalid value: "999m": must be greater than or equal to aggregate container requests of 1`}},
		{name: "two containers in sum", change: func(s *corev1.PodSpec) {
			pod(quantities("cpu", "1500m"), nil, quantities("cpu", "1"))(s)
			also(corev1.Container{Name: "b", Image: "b", Resources: corev1.ResourceRequirements{
				Requests: quantities("cpu", "1")}})(s)
		}, want: []string{at +
			`.requests[cpu]: Invalid value: "1500m": must be greater than or equal to aggregate container requests of 2`}},
		{name: "requests above limits", change: pod(quantities("memory", "2"), quantities("memory", "1"), nil),
			want: []string{at + `.requests: Invalid value: "2": must be less than or equal to memory limit of 1`}},
		{name: "negative", change: pod(nil, quantities("cpu", "-1"), nil), want: []string{
			at + `.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
			at + `.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`}},
		{name: "another resource's limit", change: pod(nil, quantities("example.com/a", "1"), nil), want: []string{
			at +
				`.limits[example.com/a]: Unsupported value: "example.com/a": supported values: "cpu", "hugepages-", "memory"`}},
		{name: "huge pages and memory", change: pod(nil, quantities("hugepages-2Mi", "4Mi", "memory", "1Gi"), nil)},
		{name: "a container's limit that is the Pod's", change: func(s *corev1.PodSpec) {
			pod(nil, quantities("cpu", "1"), nil)(s)
			s.Containers[0].Resources.Limits = quantities("cpu", "1", "memory", "1Gi")
		}},
		{name: "an init container's limit above the Pod's", change: func(s *corev1.PodSpec) {
			pod(nil, quantities("memory", "1"), nil)(s)
			withInit(corev1.Container{Name: "i", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: quantities("memory", "1"), Limits: quantities("memory", "2")}})(s)
		}, want: []string{
			`spec.initContainers[0].resources.limits[memory]: Invalid value: "2": must be less than or equal to pod limits of 1`,
		}},
		{name: "on Linux", change: func(s *corev1.PodSpec) {
			pod(quantities("cpu", "1"), nil, nil)(s)
			s.OS = &corev1.PodOS{Name: "linux"}
		}},
	})
}
