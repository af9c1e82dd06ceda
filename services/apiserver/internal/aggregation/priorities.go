package aggregation

import "k8s.io/apimachinery/pkg/runtime/schema"

// priority is where a version stands in discovery: group among the groups, version among those of its group.
type priority struct{ group, version int32 }

// definedPriority is where the versions stand that CustomResourceDefinitions have. The numbers are those of Kubernetes.
var definedPriority = priority{1000, 100}

// priorities are where the versions stand that the apiserver serves itself. The numbers are those of Kubernetes, as
// clients go by their order: of two kinds of one name, that of the group with the higher number is meant.
//
// The groups without a place have no APIServices: apiregistration.k8s.io, as in Kubernetes, and metrics.k8s.io, whose
// usual servers bring their own.
var priorities = map[schema.GroupVersion]priority{
	{Group: "", Version: "v1"}:                             {18000, 1},
	{Group: "apps", Version: "v1"}:                         {17800, 15},
	{Group: "events.k8s.io", Version: "v1"}:                {17750, 15},
	{Group: "authentication.k8s.io", Version: "v1"}:        {17700, 15},
	{Group: "authorization.k8s.io", Version: "v1"}:         {17600, 15},
	{Group: "autoscaling", Version: "v2"}:                  {17500, 30},
	{Group: "autoscaling", Version: "v1"}:                  {17500, 15},
	{Group: "batch", Version: "v1"}:                        {17400, 15},
	{Group: "certificates.k8s.io", Version: "v1"}:          {17300, 15},
	{Group: "networking.k8s.io", Version: "v1"}:            {17200, 15},
	{Group: "policy", Version: "v1"}:                       {17100, 15},
	{Group: "rbac.authorization.k8s.io", Version: "v1"}:    {17000, 15},
	{Group: "storage.k8s.io", Version: "v1"}:               {16800, 15},
	{Group: "apiextensions.k8s.io", Version: "v1"}:         {16700, 15},
	{Group: "admissionregistration.k8s.io", Version: "v1"}: {16700, 15},
	{Group: "scheduling.k8s.io", Version: "v1"}:            {16600, 15},
	{Group: "scheduling.k8s.io", Version: "v1beta1"}:       {16600, 12},
	{Group: "coordination.k8s.io", Version: "v1"}:          {16500, 15},
	{Group: "node.k8s.io", Version: "v1"}:                  {16300, 15},
	{Group: "discovery.k8s.io", Version: "v1"}:             {16200, 15},
	{Group: "resource.k8s.io", Version: "v1"}:              {16200, 20},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: {16100, 21},
}
