package certificatesigningrequest

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type condition = certificatesv1.CertificateSigningRequestCondition

// verdicts are the conditions that only who approves sets.
var verdicts = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
	certificatesv1.CertificateDenied}

// setRequester makes the request that of who makes it.
func setRequester(r *csr, who authenticationv1.UserInfo) {
	r.Spec.Username, r.Spec.UID = who.Username, who.UID
	r.Spec.Groups, r.Spec.Extra = slices.Clone(who.Groups), nil
	for key, values := range who.Extra {
		if r.Spec.Extra == nil {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		r.Spec.Extra[key] = slices.Clone(certificatesv1.ExtraValue(values))
	}
}

// prepareStatus leaves the verdicts as they are, wherever they stand: who signs does not approve.
func prepareStatus(r, old *csr, now metav1.Time) {
	written := r.Status.Conditions
	r.Status.Conditions = nil
	for _, kind := range verdicts {
		if !slices.ContainsFunc(written, func(c condition) bool { return c.Type == kind }) {
			r.Status.Conditions = append(r.Status.Conditions, find(old, kind)...)
		}
	}
	for i, c := range written {
		switch {
		case !isVerdict(c):
			r.Status.Conditions = append(r.Status.Conditions, c)
		case !slices.ContainsFunc(written[:i], func(other condition) bool { return other.Type == c.Type }):
			r.Status.Conditions = append(r.Status.Conditions, find(old, c.Type)...)
		}
	}
	stamp(r, old, now)
}

// prepareApproval leaves all but the conditions as it is: who approves does not sign.
func prepareApproval(r, old *csr, now metav1.Time) {
	written := r.Status.Conditions
	r.Spec, r.Status = old.Spec, *old.Status.DeepCopy()
	r.Status.Conditions = written
	stamp(r, old, now)
}

// stamp gives the conditions the times that they lack.
func stamp(r, old *csr, now metav1.Time) {
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, was := range find(old, c.Type) {
			if was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
}

func isVerdict(c condition) bool { return slices.Contains(verdicts, c.Type) }

// find are the conditions of the type; a valid request has one at most.
func find(r *csr, kind certificatesv1.RequestConditionType) []condition {
	var all []condition
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == kind {
			all = append(all, r.Status.Conditions[i])
		}
	}
	return all
}
