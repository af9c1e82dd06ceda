package csrapproving

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/certrequest"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// lookAgain is how long a request that nobody may have approved waits for the next look: roles may be bound later.
const lookAgain = time.Minute

// form is a kind of request that is approved with nobody looking, if who makes it has a right.
type form struct {
	// subresource of certificatesigningrequests is what the right is to, with the verb create.
	subresource string
	message     string
}

// The forms: a node that renews its certificate, and somebody who asks for that of a node.
var (
	selfNodeClient = form{"selfnodeclient",
		"Auto approving self kubelet client certificate after SubjectAccessReview."}
	nodeClient = form{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
)

type csr = certificatesv1.CertificateSigningRequest

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Request *csr
	// Allowed are the subresources, of those that formsOf has asked about, to which who made the request has the right.
	Allowed map[string]bool
	Now     time.Time
}

// Plan is what one pass does.
type Plan struct {
	// Approve is the condition to add; nil: none.
	Approve *certificatesv1.CertificateSigningRequestCondition
	// Lacks are the rights of which one would do.
	Lacks []string
	// After is when to look again; 0: when something changes.
	After time.Duration
}

// formsOf are those of a request that nobody has decided about, the one that is most its own first. Of what is for
// others to approve there are none.
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

// Decide approves a request whose maker has the right to one of its forms.
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
