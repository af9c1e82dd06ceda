package node

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"
)

// claimingDevices are a Pod of each node with a claim by name and one that was made for it, and what node a says is a
// static Pod of its own.
func claimingDevices() []corev1.Pod {
	pods := cluster()
	for i := range pods {
		name := pods[i].Name
		pods[i].Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "named",
			ResourceClaimName: ptr.To(name + "-gpu")},
			{Name: "made", ResourceClaimTemplateName: ptr.To("template")}}
		pods[i].Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
			{Name: "made", ResourceClaimName: ptr.To(name + "-made-x")}}
	}
	return pods
}

// A node reads the claims that its Pods use, and has the slices of its own devices.
func TestDevices(t *testing.T) {
	const claims, slices, mineOnly = "resourceclaims", "resourceslices",
		"can only list/watch/deletecollection resourceslices with spec.nodeName field selector"
	const unrelated, noName = "no relationship found between node 'a' and this object", "No Object name found"
	single, many := []string{"get", "update", "patch", "delete"}, []string{"list", "watch", "deletecollection"}
	for name, row := range map[string]struct {
		verbs              []string
		resource, ns, name string
		selector           string
		allowed            bool
		reason             string
	}{
		"the claim of its Pod": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "mine-gpu",
			allowed: true},
		"the one made for its Pod": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "mine-made-x",
			allowed: true},
		"another's": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "theirs-gpu",
			reason: unrelated},
		"the one made for another's": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "theirs-made-x",
			reason: unrelated},
		"of a Pod that waits": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "waiting-gpu",
			reason: unrelated},
		"of a static Pod": {verbs: []string{"get"}, resource: claims, ns: "ns", name: "static-made-x",
			reason: unrelated},
		"of the name elsewhere": {verbs: []string{"get"}, resource: claims, ns: "other", name: "mine-gpu",
			reason: unrelated},
		"claims": {verbs: []string{"list", "watch"}, resource: claims, ns: "ns"},
		"writing the claim": {verbs: append(single[1:], "create"), resource: claims, ns: "ns",
			name: "mine-gpu"},
		"a status of the claim": {verbs: single, resource: claims + "/status", ns: "ns", name: "mine-gpu"},
		"the template": {verbs: []string{"get"}, resource: "resourceclaimtemplates", ns: "ns",
			name: "template"},
		"classes":                   {verbs: []string{"get", "list", "watch"}, resource: "deviceclasses"},
		"a new slice":               {verbs: []string{"create"}, resource: slices, allowed: true},
		"its slice":                 {verbs: single, resource: slices, name: "of-a", allowed: true},
		"another's slice":           {verbs: single, resource: slices, name: "of-b", reason: unrelated},
		"a slice of no node":        {verbs: single, resource: slices, name: "of-all", reason: unrelated},
		"a slice that is not there": {verbs: single, resource: slices, name: "none", reason: unrelated},
		"a slice without a name":    {verbs: single, resource: slices, reason: noName},
		"all slices":                {verbs: many, resource: slices, reason: mineOnly},
		"a slice by a list": {verbs: many, resource: slices, name: "of-b", selector: "metadata.name=of-b",
			reason: mineOnly},
		"its slices": {verbs: many, resource: slices, selector: "spec.nodeName=a", allowed: true},
		"its slices of a driver": {verbs: many, resource: slices, selector: "spec.nodeName=a,spec.driver=d",
			allowed: true},
		"another's slices":         {verbs: many, resource: slices, selector: "spec.nodeName=b", reason: mineOnly},
		"all but another's slices": {verbs: many, resource: slices, selector: "spec.nodeName!=b", reason: mineOnly},
		"slices of a driver":       {verbs: many, resource: slices, selector: "spec.driver=a", reason: mineOnly},
	} {
		a := New(Objects{
			Pods: func(context.Context, string, string, string) ([]corev1.Pod, error) { return claimingDevices(), nil },
			Slice: func(_ context.Context, name, _ string) (*resourcev1.ResourceSlice, error) {
				spec, there := map[string]resourcev1.ResourceSliceSpec{"of-a": {NodeName: ptr.To("a")},
					"of-b": {NodeName: ptr.To("b")}, "of-all": {AllNodes: ptr.To(true)}}[name]
				if !there {
					return nil, apierrors.NewNotFound(resourcev1.Resource(slices), name)
				}
				return &resourcev1.ResourceSlice{Spec: spec}, nil
			},
		})
		for _, verb := range row.verbs {
			r := asks(verb, "resource.k8s.io", row.resource, row.ns, row.name)
			got, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}, Verb: verb,
				APIGroup: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource, Namespace: row.ns,
				Name: row.name, ResourceRequest: true,
				FieldSelectorRequirements: fields.ParseSelectorOrDie(row.selector).Requirements()})
			if (got == authorizer.DecisionAllow) != row.allowed || reason != row.reason || err != nil {
				t.Errorf("%s: %s: %v %q %v, want %v %q", name, verb, got, reason, err, row.allowed, row.reason)
			}
		}
	}
}
