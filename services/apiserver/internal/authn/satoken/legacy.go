package satoken

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// LegacyIssuer is the issuer of the tokens that Secrets of type kubernetes.io/service-account-token hold, whatever the
// issuer of all others is called.
const LegacyIssuer = "kubernetes/serviceaccount"

// Labels of a Secret that holds a token. Their values are dates.
const (
	// LastUsedLabel is the day on which the token was last used.
	LastUsedLabel = "kubernetes.io/legacy-token-last-used"
	// InvalidSinceLabel says since when the token is refused. Whoever takes the label away has it believed again.
	InvalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
)

// Date is the form in which labels say a day.
func Date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Legacy are the claims of a token that a Secret holds, beside its issuer and subject. It has no end and no audience:
// it lasts as long as the Secret and the account, and is meant for the apiserver.
type Legacy struct {
	Namespace  string    `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	Secret     string    `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	Account    string    `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID types.UID `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// LegacyOf is what the token of the account says that the Secret is to hold.
func LegacyOf(secret *corev1.Secret, account *corev1.ServiceAccount) Legacy {
	return Legacy{Namespace: secret.Namespace, Secret: secret.Name, Account: account.Name, AccountUID: account.UID}
}

// subject is the user whom the token stands for.
func (l Legacy) subject() string { return serviceaccount.MakeUsername(l.Namespace, l.Account) }

// ReadLegacy returns what a token says, whoever signed it. What is no token of a Secret says nothing.
func ReadLegacy(text []byte) Legacy {
	token, err := jwt.ParseSigned(string(text), algorithms)
	if err != nil {
		return Legacy{}
	}
	var public jwt.Claims
	var l Legacy
	if token.UnsafeClaimsWithoutVerification(&public, &l) != nil || public.Issuer != LegacyIssuer ||
		public.Subject != l.subject() {
		return Legacy{}
	}
	return l
}

// IssueLegacy signs a token for a Secret to hold.
func (i *Issuer) IssueLegacy(l Legacy) (string, error) {
	public := jwt.Claims{Issuer: LegacyIssuer, Subject: l.subject()}
	token, err := jwt.Signed(i.signer).Claims(public).Claims(l).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return token, nil
}
