package csrapproving

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/certrequest"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// lookAgain is when to check a request again whose requester lacks the right: roles may be bound later.
const lookAgain = time.Minute

// form is a kind of request that is approved automatically if the requester has a right.
type form struct {
	// subresource is the subresource of certificatesigningrequests that the requester needs the verb create on.
	subresource string
	message     string
}

// The forms: a node that renews its certificate, and a requester that asks for a node's certificate.
var (
	selfNodeClient = form{"selfnodeclient",
		"Auto approving self kubelet client certificate after SubjectAccessReview."}
	nodeClient = form{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
)

type csr = certificatesv1.CertificateSigningRequest

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Request *csr
	// Allowed are the subresources among those of formsOf that the requester has the right to.
	Allowed map[string]bool
	Now     time.Time
}

// Plan is what one pass does.
type Plan struct {
	// Approve is the condition to add; nil: none.
	Approve *certificatesv1.CertificateSigningRequestCondition
	// Lacks are the rights of which any one would suffice.
	Lacks []string
	// After is when to look again; 0: when something changes.
	After time.Duration
}

// formsOf returns the forms of an undecided request, selfNodeClient first. It returns none for a request that users
// must approve.
func formsOf(r *csr) []form {
	if len(r.Status.Certificate) > 0 || r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		decided(r) {
		return nil
	}
	request, err := certrequest.Parse(r.Spec.Request)
	if err != nil || signers.Check(r.Spec.SignerName, request, r.Spec.Usages) != nil {
		return nil
	}
	if request.Subject.CommonName == r.Spec.Username {
		return []form{selfNodeClient, nodeClient}
	}
	return []form{nodeClient}
}

func decided(r *csr) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
			c.Type == certificatesv1.CertificateFailed {
			return true
		}
	}
	return false
}

// Decide approves a request whose requester has the right to one of its forms.
func Decide(in Input) Plan {
	var plan Plan
	for _, f := range formsOf(in.Request) {
		if in.Allowed[f.subresource] {
			now := metav1.NewTime(in.Now)
			return Plan{Approve: &certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved",
				Message: f.message, LastUpdateTime: now, LastTransitionTime: now,
			}}
		}
		plan.Lacks, plan.After = append(plan.Lacks, f.subresource), lookAgain
	}
	return plan
}
