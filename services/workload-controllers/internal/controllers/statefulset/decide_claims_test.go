package statefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Each row is a set of one claim template with its Pods and claims, and what one pass does about them. The first word
// behind a comma is what becomes of it.
func TestClaims(t *testing.T) {
	one := replicas(1)
	deleted, scaled, both := retain("Delete", "Retain"), retain("Retain", "Delete"), retain("Delete", "Delete")
	for _, row := range []struct {
		name         string
		edits        []edit
		pods, claims string
		want         string
	}{
		{"SET-024 SET-050 before its Pod", nil, "", "", "claim www-web-0, create web-0 of 1"},
		{"SET-002 SET-054 kept for the next Pod", nil, "1r1 2r1", "www-web-0 www-web-1 www-web-2", "create web-0 of 1"},
		{"SET-050 one for each", []edit{parallel}, "", "", "claim www-web-0, create web-0 of 1, claim www-web-1, " +
			"create web-1 of 1, claim www-web-2, create web-2 of 1"},
		{"SET-050 of two templates", []edit{one, func(s *appsv1.StatefulSet) {
			claimed(s)
			s.Spec.VolumeClaimTemplates[1].Name = "log"
		}}, "", "", "claim www-web-0, claim log-web-0, create web-0 of 1"},
		{"SET-040 lost under its Pod", []edit{one}, "0r1", "", "claim www-web-0"},
		{"SET-040 not under a Pod that goes", []edit{one}, "0t1", "", ""},
		{"SET-040 not under one that has ended", []edit{one}, "0f1", "", "delete web-0 Ended"},
		{"SET-040 not for a surplus Pod", []edit{one}, "0r1 1r1", "www-web-0", "delete web-1 ScaledDown"},

		{"SET-019 SET-056 SET-095 SET-096 kept", []edit{one}, "0r1 1r1", "www-web-0 www-web-1",
			"delete web-1 ScaledDown"},
		{"SET-096 SET-107 nobody's again", []edit{one}, "0r1 1r1", "www-web-0@set www-web-1@web-1 www-web-2@set",
			"give www-web-0 to nobody, give www-web-1 to nobody, give www-web-2 to nobody, delete web-1 ScaledDown"},
		{"SET-107 nobody's before the Pod is made", []edit{one}, "", "www-web-0@web-0",
			"give www-web-0 to nobody, create web-0 of 1"},

		{"SET-094 SET-097 SET-104 the Pod's, then the Pod goes", []edit{one, scaled}, "0r1 1r1", "www-web-0 www-web-1",
			"give www-web-1 to Pod web-1, delete web-1 ScaledDown"},
		{"SET-105 SET-106 all of them first", []edit{one, scaled}, "0r1 1r1 2r1",
			"www-web-0 www-web-1@web-1 www-web-2", "give www-web-2 to Pod web-2, delete web-2 ScaledDown"},
		{"SET-105 SET-106 also those that go later", []edit{one, scaled}, "0r1 1r1 2t1",
			"www-web-0 www-web-1 www-web-2@web-2", "give www-web-1 to Pod web-1"},
		{"SET-094 SET-097 not what stays", []edit{one, scaled}, "0r1 1r1", "www-web-0 www-web-1@web-1",
			"delete web-1 ScaledDown"},
		{"SET-100 a Pod that is replaced", []edit{one, both}, "0f1", "www-web-0@set", "delete web-0 Ended"},
		{"SET-100 a Pod that was deleted", []edit{one, both}, "0t1", "www-web-0@set", ""},
		{"SET-100 and is gone", []edit{one, both}, "", "www-web-0@set", "create web-0 of 1"},
		{"asked for again before its Pod goes", []edit{one, scaled}, "0r1", "www-web-0@web-0",
			"give www-web-0 to nobody"},
		{"asked for again, its Pod is going", []edit{one, scaled}, "0t1", "www-web-0@web-0", ""},
		{"asked for again, its Pod is gone", []edit{one, scaled}, "", "www-web-0@web-0", ""},

		{"SET-093 SET-098 SET-102 the set's", []edit{one, deleted}, "0r1", "www-web-0",
			"give www-web-0 to StatefulSet web"},
		{"SET-098 SET-102 the set's for surplus Pods", []edit{one, deleted}, "0r1 1r1", "www-web-0@set www-web-1",
			"give www-web-1 to StatefulSet web, delete web-1 ScaledDown"},
		{"SET-098 SET-102 it stays the set's", []edit{one, deleted}, "0r1", "www-web-0@set www-web-1@set", ""},
		{"a claim of another time is left alone", []edit{one, deleted}, "0r1", "www-web-0@set www-web-1", ""},
		{"SET-099 SET-104 from the set to the Pod", []edit{one, both}, "0r1 1r1", "www-web-0@set www-web-1@set",
			"give www-web-1 to Pod web-1, delete web-1 ScaledDown"},
		{"SET-107 from the Pod to the set", []edit{one, deleted}, "0r1 1r1", "www-web-0@set www-web-1@web-1",
			"give www-web-1 to StatefulSet web, delete web-1 ScaledDown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet(append([]edit{claimed}, row.edits...)...)
			if got := effects(Decide(input(set, row.pods, row.claims))); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

// SET-092: no Pod is made for a claim that will be gone, and nothing about it is changed. It is looked at again.
func TestClaimInTheWay(t *testing.T) {
	other := func(reference metav1.OwnerReference) Input {
		in := input(newSet(claimed, replicas(1), retain("Delete", "Delete")), "", "www-web-0")
		in.Claims["www-web-0"].OwnerReferences = []metav1.OwnerReference{reference}
		return in
	}
	deleting := input(newSet(claimed, replicas(1)), "", "www-web-0")
	deleting.Claims["www-web-0"].DeletionTimestamp = &metav1.Time{Time: now}
	for name, in := range map[string]Input{
		"being deleted":  deleting,
		"a former Pod's": other(metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web-0", UID: "former"}),
		"a former set's": other(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web",
			UID: "former", Controller: ptr.To(true)}),
	} {
		plan := Decide(in)
		if got := effects(plan); got != "" || !plan.Wake.Equal(now.Add(5*time.Second)) {
			t.Errorf("%s: %q, wake %v", name, got, plan.Wake)
		}
	}
}

// Owners that are neither the set nor its Pods stay; a claim that another controls is left alone.
func TestOtherOwnersOfClaims(t *testing.T) {
	backup := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Backup", Name: "b", UID: "b"}
	in := input(newSet(claimed, replicas(1), retain("Delete", "Retain")), "0r1", "www-web-0")
	in.Claims["www-web-0"].OwnerReferences = []metav1.OwnerReference{backup}
	owners := Decide(in).Owners
	if len(owners) != 1 || len(owners[0].OwnerReferences) != 2 || owners[0].OwnerReferences[0] != backup {
		t.Errorf("%+v", owners)
	}
	in.Claims["www-web-0"].OwnerReferences[0].Controller = ptr.To(true)
	if plan := Decide(in); effects(plan) != "" {
		t.Errorf("%s, though another controls it", effects(plan))
	}
}
