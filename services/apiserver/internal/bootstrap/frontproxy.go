package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"keelson.dev/services/apiserver/internal/frontproxy"
)

const (
	// frontProxySecret has the certificate that all apiservers on the store show to other API servers.
	frontProxySecret = "apiserver-front-proxy"
	authorityKey     = "ca.crt"
	// extensionConfig is where other API servers look up how the apiserver authenticates; extensionReader may read it.
	extensionConfig = "extension-apiserver-authentication"
	extensionReader = "extension-apiserver-authentication-reader"
)

// ensureFrontProxy makes the certificate for other API servers, uses it, and tells them by what they know it.
func (b *Bootstrapper) ensureFrontProxy(ctx context.Context) error {
	pair, err := b.frontProxyPair(ctx)
	if err != nil {
		return fmt.Errorf("making the Secret %s: %w", frontProxySecret, err)
	}
	// Known before it is used: who is shown a certificate looks it up.
	data := extensionData(pair, b.ClientAuthority())
	err = b.ensureConfigMap(ctx, extensionConfig, func(map[string]string) map[string]string { return data })
	if err != nil {
		return describe("ConfigMap", extensionConfig, err)
	}
	if err := b.FrontProxy.Use(pair); err != nil {
		return err
	}
	roles := reconciliation.ReconcileRoleOptions{
		Role: reconciliation.RoleRuleOwner{Role: extensionRole()}, Confirm: true,
		Client: reconciliation.RoleModifier{Client: b.Client.RbacV1(), NamespaceClient: b.Client.CoreV1().Namespaces()},
	}
	_, err = roles.Run()
	return describe("Role", extensionReader, err)
}

// frontProxyPair is that of the Secret, which is made or replaced where it is of no use.
func (b *Bootstrapper) frontProxyPair(ctx context.Context) (frontproxy.Pair, error) {
	client := b.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	have, err := client.Get(ctx, frontProxySecret, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return frontproxy.Pair{}, err
	}
	pair := frontproxy.Pair{Authority: have.Data[authorityKey], Certificate: have.Data[corev1.TLSCertKey],
		Key: have.Data[corev1.TLSPrivateKeyKey]}
	if pair.Check(time.Now()) == nil {
		return pair, nil
	}
	if pair, err = frontproxy.New(time.Now()); err != nil {
		return frontproxy.Pair{}, err
	}
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: frontProxySecret, ResourceVersion: have.ResourceVersion},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{authorityKey: pair.Authority, corev1.TLSCertKey: pair.Certificate,
			corev1.TLSPrivateKeyKey: pair.Key},
	}
	// An apiserver that was faster makes this an error: the next round takes the other's pair.
	if missing {
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err != nil {
		return frontproxy.Pair{}, fmt.Errorf("keeping a new certificate: %w", err)
	}
	return pair, nil
}

// extensionData are the keys that API servers of the field read.
func extensionData(pair frontproxy.Pair, clients []byte) map[string]string {
	data := map[string]string{
		"requestheader-client-ca-file":       string(pair.Authority),
		"requestheader-allowed-names":        `["` + frontproxy.CommonName + `"]`,
		"requestheader-username-headers":     `["X-Remote-User"]`,
		"requestheader-uid-headers":          `["X-Remote-Uid"]`,
		"requestheader-group-headers":        `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}
	if len(clients) > 0 {
		data["client-ca-file"] = string(clients)
	}
	return data
}

// extensionRole lets who is bound to it read the ConfigMap.
func extensionRole() *rbacv1.Role {
	reads := rule(read, "", "configmaps")
	reads.ResourceNames = []string{extensionConfig}
	role := &rbacv1.Role{ObjectMeta: systemMeta(extensionReader), Rules: []rbacv1.PolicyRule{reads}}
	role.Namespace = metav1.NamespaceSystem
	return role
}
