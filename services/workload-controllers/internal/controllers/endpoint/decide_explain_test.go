package endpoint

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is told is what the Endpoints say, and what the Pods lack that they do not list as ready.
func TestAccount(t *testing.T) {
	in := func(pods ...*corev1.Pod) Input { return Input{Service: service(), Pods: pods} }
	settled := in(pod(1), pod(2))
	settled.Endpoints = Decide(settled).Create
	changed := in(pod(1), pod(2, unready))
	changed.Endpoints = settled.Endpoints
	var many []*corev1.Pod
	for i := range maxAddresses + 1 {
		many = append(many, pod(i))
	}
	ended := pod(2, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"new":          {in(pod(1)), []string{"in its next pass creates the Endpoints"}},
		"settled":      {settled, []string{"waits for nothing: they list 2 of the 2 Pods that the Service selects"}},
		"not ready":    {changed, []string{"in its next pass changes the Endpoints", "NotReady: waits for 1 address"}},
		"no Pods":      {in(), []string{"NoPods: waits for a Pod with the labels app=web"}},
		"one ended":    {in(pod(1), ended), []string{"NotListed: waits for 1 Pod that cannot be listed: ended"}},
		"just as many": {in(many[1:]...), nil},
		"too many": {in(many...), []string{
			"OverCapacity: waits for room for all addresses: there are 1001, and Endpoints have at most 1000"}},
	} {
		e := account(row.in, Decide(row.in)).Explanation()
		said := e.Summary
		for _, fact := range e.Facts {
			said += "\n" + fact.Reason + ": " + fact.Message
		}
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
		if waits := strings.Contains(said, "waits for "); name == "just as many" && waits {
			t.Errorf("%s: %s", name, said)
		}
	}
}
