// Package disruptions serves the PodDisruptionBudget, so that evictions can read the budgets and spend them.
package disruptions

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/policy/poddisruptionbudget"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Budgets is how evictions read and spend the budgets. It has them once the store of PodDisruptionBudget is open.
type Budgets struct{ storage *rest.Storage }

// PodDisruptionBudget is the PodDisruptionBudget, whose store budgets then reads and writes.
func PodDisruptionBudget(budgets *Budgets) rest.Entry {
	return rest.ServeWrapped(poddisruptionbudget.Resource, func(s *rest.Storage) genericrest.Storage {
		budgets.storage = s
		return s
	})
}

// List returns the budgets of the context's namespace as they are stored now.
func (b *Budgets) List(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	obj, err := b.storage.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets: %w", err)
	}
	list, ok := obj.(*policyv1.PodDisruptionBudgetList)
	if !ok {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets: unexpected object %T", obj)
	}
	return list.Items, nil
}

// Spend changes the status of the budget called name, as one write: spend sees the budget as it is, again if another
// write came first, and what it refuses is not written. A dry run writes nothing.
func (b *Budgets) Spend(ctx context.Context, name string, dryRun []string,
	spend func(*policyv1.PodDisruptionBudget) error) error {
	info := genericrest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object,
		error) {
		budget, ok := old.(*policyv1.PodDisruptionBudget)
		if !ok {
			return nil, fmt.Errorf("spending a PodDisruptionBudget: unexpected object %T", old)
		}
		budget = budget.DeepCopy()
		return budget, spend(budget)
	})
	_, _, err := b.storage.Status.Update(ctx, name, info, genericrest.ValidateAllObjectFunc,
		genericrest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	return err
}
