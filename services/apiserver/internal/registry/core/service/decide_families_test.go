package service

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

// spec is "POLICY FAMILIES IPS": the policy by its first letter (S, P, R, or - for none), the families as 4 and 6, the
// addresses with commas; a trailing "none" selects nothing.
func familySpec(t *testing.T, text string) *corev1.Service {
	t.Helper()
	words := strings.Fields(text)
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP,
		Selector: map[string]string{"app": "web"}}}
	policies := map[string]corev1.IPFamilyPolicy{"S": "SingleStack", "P": "PreferDualStack", "R": "RequireDualStack"}
	if policy, ok := policies[words[0]]; ok {
		s.Spec.IPFamilyPolicy = &policy
	}
	for _, family := range strings.Trim(words[1], "-") {
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily("IPv"+string(family)))
	}
	if words[2] != "-" {
		s.Spec.ClusterIPs = strings.Split(words[2], ",")
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	if len(words) > 3 {
		s.Spec.Selector = nil
	}
	return s
}

func describeFamilies(s *corev1.Service) string {
	policy, families := "-", ""
	if s.Spec.IPFamilyPolicy != nil {
		policy = string(*s.Spec.IPFamilyPolicy)[:1]
	}
	for _, family := range s.Spec.IPFamilies {
		families += strings.TrimPrefix(string(family), "IPv")
	}
	return fmt.Sprintf("%s %s %s", policy, families, strings.Join(s.Spec.ClusterIPs, ","))
}

// What a new Service gets, in a cluster of one family, of the other, and of both.
func TestSettleFamilies(t *testing.T) {
	four, six := []corev1.IPFamily{"IPv4"}, []corev1.IPFamily{"IPv6"}
	both, sixFirst := []corev1.IPFamily{"IPv4", "IPv6"}, []corev1.IPFamily{"IPv6", "IPv4"}
	const noSecond = "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for " +
		"dual-stack"
	for _, row := range []struct {
		cluster  []corev1.IPFamily
		in, want string
		errs     []string
	}{
		{four, "- - -", "S 4 ", nil}, {six, "- - -", "S 6 ", nil}, {sixFirst, "- - -", "S 6 ", nil},
		{both, "S - -", "S 4 ", nil}, {both, "S 6 -", "S 6 ", nil},
		{four, "P - -", "P 4 ", nil}, {both, "P - -", "P 46 ", nil}, {sixFirst, "P - -", "P 64 ", nil},
		{both, "P 6 -", "P 64 ", nil}, {both, "R - -", "R 46 ", nil}, {both, "R 64 -", "R 64 ", nil},
		{four, "R - -", "", []string{noSecond}},
		{both, "- 46 -", "R 46 ", nil}, {both, "- - 10.0.0.1,fd00::1", "R 46 10.0.0.1,fd00::1", nil},
		{both, "- - fd00::1", "S 6 fd00::1", nil}, {both, "P - fd00::1", "P 64 fd00::1", nil},
		{four, "- 6 -", "", []string{`spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`}},
		{four, "- - fd00::1", "", []string{
			`spec.clusterIPs[0]: Invalid value: "fd00::1": IPv6 is not configured on this cluster`}},
		{four, "P 46 -", "", []string{`spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster`}},
		{both, "S 46 -", "",
			[]string{"spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be RequireDualStack or " +
				"PreferDualStack when multiple ipFamilies are specified"}},
		{both, "S - 10.0.0.1,fd00::1", "", []string{"spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be " +
			"RequireDualStack or PreferDualStack when multiple ipFamilies", "spec.ipFamilyPolicy: Invalid value: " +
			"\"SingleStack\": must be RequireDualStack or PreferDualStack when multiple clusterIPs"}},
		{four, "- - None", "S 4 None", nil}, {both, "P - None", "P 46 None", nil},
		{four, "- - None none", "R 46 None", nil}, {six, "- - None none", "R 64 None", nil},
		{four, "S - None none", "S 4 None", nil}, {four, "- 6 None none", "R 64 None", nil},
	} {
		t.Run(fmt.Sprint(row.cluster, " ", row.in), func(t *testing.T) {
			s := familySpec(t, row.in)
			errs := settleFamilies(s, nil, row.cluster)
			fieldtest.Check(t, errs, row.errs...)
			if got := describeFamilies(s); len(row.errs) == 0 && got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			again := s.DeepCopy()
			if len(errs) == 0 && (len(settleFamilies(again, s, row.cluster)) > 0 ||
				describeFamilies(again) != describeFamilies(s)) {
				t.Errorf("an update with itself makes it %q", describeFamilies(again))
			}
		})
	}
}

// What a write makes of a Service that has its families: it gains or loses one only if the write is about that.
func TestFamiliesOfUpdates(t *testing.T) {
	both := []corev1.IPFamily{"IPv4", "IPv6"}
	for _, row := range []struct {
		name, old, in, want string
		cluster             []corev1.IPFamily
	}{
		{"a second one is asked for", "S 4 10.0.0.1", "R - -", "R 46 10.0.0.1", both},
		{"a second one is preferred", "S 4 10.0.0.1", "P - -", "P 46 10.0.0.1", both},
		{"the cluster has two by now", "P 4 10.0.0.1", "P - -", "P 4 10.0.0.1", both},
		{"the cluster has one by now", "P 46 10.0.0.1,fd00::1", "P - -", "P 46 10.0.0.1,fd00::1", both[:1]},
		{"one is asked for", "R 46 10.0.0.1,fd00::1", "S - -", "S 4 10.0.0.1", both},
		{"one is asked for, all else is sent back", "R 46 10.0.0.1,fd00::1", "S 46 10.0.0.1,fd00::1", "S 4 10.0.0.1",
			both},
		{"nothing is said", "R 46 10.0.0.1,fd00::1", "- - -", "R 46 10.0.0.1,fd00::1", both},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, s := familySpec(t, row.old), familySpec(t, row.in)
			inherit(s, old)
			normalize(s, old)
			fieldtest.Check(t, settleFamilies(s, old, row.cluster))
			if got := describeFamilies(s); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	external := familySpec(t, "- - -")
	external.Spec.Type = corev1.ServiceTypeExternalName
	settleFamilies(external, nil, both)
	if got := describeFamilies(external); got != "-  " {
		t.Errorf("an external name has %q", got)
	}
}
