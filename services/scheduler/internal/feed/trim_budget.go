package feed

import policyv1 "k8s.io/api/policy/v1"

// trimBudget keeps which Pods a budget protects and how many of them may go.
func trimBudget(object any) (any, error) {
	pdb, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return object, nil
	}
	trimMeta(&pdb.ObjectMeta)
	pdb.Spec = policyv1.PodDisruptionBudgetSpec{Selector: pdb.Spec.Selector}
	pdb.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: pdb.Status.DisruptionsAllowed,
		DisruptedPods: pdb.Status.DisruptedPods}
	return pdb, nil
}
