// Package signerrights asks who may act for a signer of certificates: that is a verb, approve, sign or attest, on the
// resource signers of group certificates.k8s.io, of the signer's name or of all signers of its domain.
package signerrights

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Allowed asks for the right to the signer, and then to all signers of its domain.
func Allowed(ctx context.Context, a authorizer.Authorizer, who user.Info, verb, signer string) (bool, error) {
	for _, name := range []string{signer, allOfDomain(signer)} {
		decision, _, err := a.Authorize(ctx, authorizer.AttributesRecord{User: who, Verb: verb,
			APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", Name: name,
			ResourceRequest: true})
		switch {
		case decision == authorizer.DecisionAllow:
			return true, nil
		case err != nil:
			return false, fmt.Errorf("asking who may %s for the signer %q: %w", verb, name, err)
		}
	}
	return false, nil
}

// allOfDomain is the name by which a right is one to all signers of the signer's domain.
func allOfDomain(signer string) string {
	domain, _, _ := strings.Cut(signer, "/")
	return domain + "/*"
}
