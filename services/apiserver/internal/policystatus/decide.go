package policystatus

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// due reports whether no apiserver has checked the policy since its spec changed.
func due(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil
}

// decide is the policy with what was found in its expressions, even if that is nothing. Conditions belong to others.
func decide(p *admissionregistrationv1.ValidatingAdmissionPolicy,
	found []admissionregistrationv1.ExpressionWarning) *admissionregistrationv1.ValidatingAdmissionPolicy {
	p = p.DeepCopy()
	p.Status.ObservedGeneration = p.Generation
	p.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: found}
	return p
}
