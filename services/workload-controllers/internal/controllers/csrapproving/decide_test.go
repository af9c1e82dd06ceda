package csrapproving

import (
	"crypto/x509/pkix"
	"reflect"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/certrequest/certrequesttest"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// asking returns the request of a node for its own certificate, edited.
func asking(t *testing.T, user string, groups []string, edits ...func(*csr)) *csr {
	t.Helper()
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "asked", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    certrequesttest.For(t, pkix.Name{CommonName: user, Organization: groups}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: "system:node:n1",
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func by(user string) func(*csr) {
	return func(r *csr) { r.Spec.Username = user }
}

func told(kind certificatesv1.RequestConditionType) func(*csr) {
	return func(r *csr) {
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: "True"}}
	}
}

// Only client certificates of nodes are approved automatically, for the node or for a requester with the right to
// ask for it.
func TestDecide(t *testing.T) {
	nodes := []string{"system:nodes"}
	const own, both, node = "selfnodeclient", "selfnodeclient nodeclient", "nodeclient"
	to := func(signer string) func(*csr) {
		return func(r *csr) { r.Spec.SignerName = signer }
	}
	for _, row := range []struct {
		name    string
		request *csr
		allowed string
		want    string // approved, or the rights that are lacking, or nothing
	}{
		{"a node", asking(t, "system:node:n1", nodes), own, "approved self"},
		{"a node that may ask for any", asking(t, "system:node:n1", nodes), node, "approved"},
		{"a node that may both", asking(t, "system:node:n1", nodes), both, "approved self"},
		{"a node that may not", asking(t, "system:node:n1", nodes), "", "lacks " + both},
		{"a bootstrap token", asking(t, "system:node:n1", nodes, by("system:bootstrap:abcdef")), node, "approved"},
		{"a bootstrap token with the right to itself",
			asking(t, "system:node:n1", nodes, by("system:bootstrap:abcdef")), own, "lacks " + node},
		{"a node for another one", asking(t, "system:node:n2", nodes), own, "lacks " + node},
		{"somebody who asks for himself", asking(t, "ann", nodes, by("ann")), both, ""},
		{"a node of everything", asking(t, "system:node:n1", []string{"system:masters"}), both, ""},
		{"a node of everything too", asking(t, "system:node:n1", []string{"system:nodes", "system:masters"}), both, ""},
		{"a node's server", asking(t, "system:node:n1", nodes, to(certificatesv1.KubeletServingSignerName)), both, ""},
		{"a client", asking(t, "system:node:n1", nodes, to(certificatesv1.KubeAPIServerClientSignerName)), both, ""},
		{"another signer", asking(t, "system:node:n1", nodes, to("example.com/clients")), both, ""},
		{"a node that would serve too", asking(t, "system:node:n1", nodes,
			func(r *csr) {
				r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
			}), both, ""},
		{"unreadable", asking(t, "system:node:n1", nodes, func(r *csr) {
			r.Spec.Request = append(r.Spec.Request, r.Spec.Request...)
		}), both, ""},
		{"approved", asking(t, "system:node:n1", nodes, told(certificatesv1.CertificateApproved)), both, ""},
		{"denied", asking(t, "system:node:n1", nodes, told(certificatesv1.CertificateDenied)), both, ""},
		{"failed", asking(t, "system:node:n1", nodes, told(certificatesv1.CertificateFailed)), both, ""},
		{"told something else", asking(t, "system:node:n1", nodes, told("Seen")), own, "approved self"},
		{"issued", asking(t, "system:node:n1", nodes, func(r *csr) {
			r.Status.Certificate = []byte("x")
		}), both, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Request: row.request, Allowed: map[string]bool{}, Now: now}
			for right := range strings.FieldsSeq(row.allowed) {
				in.Allowed[right] = true
			}
			before := row.request.DeepCopy()
			plan := Decide(in)
			if got := effect(plan); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			if (plan.After > 0) != strings.HasPrefix(row.want, "lacks") {
				t.Errorf("looks again after %s", plan.After)
			}
			if !reflect.DeepEqual(before, row.request) {
				t.Error("the decision changed its input")
			}
		})
	}
}

func effect(plan Plan) string {
	c := plan.Approve
	switch {
	case c == nil && len(plan.Lacks) > 0:
		return "lacks " + strings.Join(plan.Lacks, " ")
	case c == nil:
		return ""
	case c.Type != "Approved" || c.Status != "True" || c.Reason != "AutoApproved" || !c.LastUpdateTime.Time.Equal(now):
		return "something else"
	case strings.Contains(c.Message, " self "):
		return "approved self"
	}
	return "approved"
}

func TestAccount(t *testing.T) {
	nodes := []string{"system:nodes"}
	for _, row := range []struct {
		request *csr
		allowed string
		want    string
	}{
		{asking(t, "system:node:n1", nodes), "selfnodeclient", "in its next pass approves it"},
		{asking(t, "system:node:n1", nodes, by("eve")), "", "waits for somebody to approve it: eve may not create " +
			"certificatesigningrequests/nodeclient"},
		{asking(t, "ann", nil), "", "waits for somebody to approve it"},
		{asking(t, "ann", nil, told(certificatesv1.CertificateDenied)), "", "waits for nothing: it is decided about"},
	} {
		in := Input{Request: row.request, Allowed: map[string]bool{row.allowed: true}, Now: now}
		if got := account(in, Decide(in)).Explanation().Summary; got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
