package legacytoken

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// Input is all that a decision about a Secret depends on. Decide changes none of it.
type Input struct {
	Secret *corev1.Secret
	// Account has the name that the Secret gives; nil: there is none.
	Account *corev1.ServiceAccount
	// RootCA is the PEM bundle by which clients know the apiserver; empty if none is published.
	RootCA []byte
	// Signs reports whether this apiserver has a key to sign with.
	Signs bool
}

// Plan names the effect of one look at a Secret: at most one of Delete and Update is set.
type Plan struct {
	// Delete is for a Secret whose account does not exist.
	Delete bool
	// Update is the Secret with what it lacks; nil: nothing. With Sign it still lacks the token that says Claims.
	Update *corev1.Secret
	Sign   bool
	Claims satoken.Legacy
}

// Decide says what a Secret needs. A token that says what it must stays, whoever signed it: another apiserver may have
// the key. Secrets of other types are none of its business, and an immutable one cannot be helped.
func Decide(in Input) Plan {
	s := in.Secret
	name := s.Annotations[corev1.ServiceAccountNameKey]
	if s.Type != corev1.SecretTypeServiceAccountToken || s.DeletionTimestamp != nil || name == "" {
		return Plan{}
	}
	if !belongs(s, in.Account) {
		return Plan{Delete: true}
	}
	if in.Account.DeletionTimestamp != nil || ptr.Deref(s.Immutable, false) {
		return Plan{}
	}
	claims := satoken.LegacyOf(s, in.Account)
	sign := in.Signs && satoken.ReadLegacy(s.Data[corev1.ServiceAccountTokenKey]) != claims
	want := map[string][]byte{corev1.ServiceAccountNamespaceKey: []byte(s.Namespace)}
	if len(in.RootCA) > 0 {
		want[corev1.ServiceAccountRootCAKey] = in.RootCA
	}
	updated := s.DeepCopy()
	lacks := sign
	for key, value := range want {
		if !bytes.Equal(s.Data[key], value) {
			lacks = true
			setData(updated, key, value)
		}
	}
	if uid := string(in.Account.UID); s.Annotations[corev1.ServiceAccountUIDKey] != uid {
		lacks = true
		updated.Annotations[corev1.ServiceAccountUIDKey] = uid
	}
	if !lacks {
		return Plan{}
	}
	return Plan{Update: updated, Sign: sign, Claims: claims}
}

func setData(s *corev1.Secret, key string, value []byte) {
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Data[key] = value
}

// belongs is whether the Secret is one of this account, and not of an earlier one of its name.
func belongs(s *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := types.UID(s.Annotations[corev1.ServiceAccountUIDKey])
	return account != nil && (uid == "" || uid == account.UID)
}

// without is the account without the Secret in its list.
func without(account *corev1.ServiceAccount, secret string) *corev1.ServiceAccount {
	changed := account.DeepCopy()
	changed.Secrets = slices.DeleteFunc(changed.Secrets,
		func(r corev1.ObjectReference) bool { return r.Name == secret })
	return changed
}
