package resourceclaim

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/utils/ptr"
)

// right is what a write of a status needs beside that on the status itself: one on resourceclaims/binding, or on
// resourceclaims/driver for what a driver says of its devices. Neither is served.
type right struct {
	authorizer.Attributes
	verb, subresource, namespace, name string
}

// GetVerb implements authorizer.Attributes.
func (r right) GetVerb() string { return r.verb }

// GetSubresource implements authorizer.Attributes.
func (r right) GetSubresource() string { return r.subresource }

// GetNamespace implements authorizer.Attributes.
func (r right) GetNamespace() string { return r.namespace }

// GetName implements authorizer.Attributes.
func (r right) GetName() string { return r.name }

// askOnStatus asks whether who writes a status may write those parts of it that change.
func (c Config) askOnStatus(ctx context.Context, obj, old *claim) field.ErrorList {
	errs := c.Namespaces.AllowAdmin(ctx, old.Namespace, servesAdmin(&obj.Status, &old.Status))
	drivers := changedDrivers(&obj.Status, &old.Status)
	bound := rebinds(&obj.Status, &old.Status)
	if len(drivers) == 0 && !bound {
		return errs
	}
	asked, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return append(errs, field.InternalError(statusPath, fmt.Errorf("finding out who writes the status: %w", err)))
	}
	if bound {
		// Who gives devices away does so for the whole cluster.
		needed := right{asked, asked.GetVerb(), resourcev1.SubresourceBinding, "", ""}
		if reason, may := c.may(ctx, needed); !may {
			errs = append(errs, field.Forbidden(statusPath, fmt.Sprintf("changing status.allocation or "+
				"status.reservedFor requires the verb %q on resourceclaims/binding in all namespaces%s", needed.verb,
				reason)))
		}
	}
	verbs := driverVerbs(asked.GetUser(), nodeOf(&obj.Status), asked.GetVerb())
	for _, driver := range drivers {
		if reason, may := c.mayAny(ctx, asked, verbs, driver); !may {
			errs = append(errs, field.Forbidden(devicesPath, fmt.Sprintf("changing status.devices of driver %q "+
				"requires one of the verbs %q on resourceclaims/driver %q%s", driver, verbs, driver, reason)))
		}
	}
	return errs
}

func (c Config) mayAny(ctx context.Context, asked authorizer.Attributes, verbs []string, driver string) (string, bool) {
	reason, may := "", false
	for _, verb := range verbs {
		needed := right{asked, verb, resourcev1.SubresourceDriver, asked.GetNamespace(), driver}
		if reason, may = c.may(ctx, needed); may {
			break
		}
	}
	return reason, may
}

// may answers with a reason where it is no.
func (c Config) may(ctx context.Context, needed right) (string, bool) {
	decision, reason, err := c.Authorizer.Authorize(ctx, needed)
	switch {
	case decision == authorizer.DecisionAllow:
		return "", true
	case err != nil:
		return ": " + err.Error(), false
	case reason != "":
		return ": " + reason, false
	}
	return "", false
}

// driverVerbs are the verbs of which one lets a driver say something of its devices. A service account whose token is
// of the node that has the devices needs less than one that comes from anywhere.
func driverVerbs(who user.Info, node, verb string) []string {
	anywhere := resourcev1.VerbPrefixArbitraryNode + verb
	_, _, err := serviceaccount.SplitUsername(who.GetName())
	of := who.GetExtra()[serviceaccount.NodeNameKey]
	if err != nil || node == "" || len(of) != 1 || of[0] != node {
		return []string{anywhere}
	}
	return []string{resourcev1.VerbPrefixAssociatedNode + verb, anywhere}
}

// servesAdmin is the path of the first device that a write gives to who asks as an administrator; nil where it gives
// none.
func servesAdmin(now, was *resourcev1.ResourceClaimStatus) *field.Path {
	if firstForAdmin(was) >= 0 {
		return nil
	}
	if i := firstForAdmin(now); i >= 0 {
		return allocationPath.Child("devices", "results").Index(i).Child("adminAccess")
	}
	return nil
}

func firstForAdmin(status *resourcev1.ResourceClaimStatus) int {
	if status.Allocation != nil {
		for i := range status.Allocation.Devices.Results {
			if ptr.Deref(status.Allocation.Devices.Results[i].AdminAccess, false) {
				return i
			}
		}
	}
	return -1
}
