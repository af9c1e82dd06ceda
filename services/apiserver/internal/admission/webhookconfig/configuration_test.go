package webhookconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		head:                                   "",
		head + "kubeConfigFile: " + file:       "",
		"":                                     `apiVersion: ""`,
		head + "kubeConfigFile: config":        `kubeConfigFile: "config" must be an absolute path`,
		head + "kubeConfigFile: " + file + "s": "kubeConfigFile: stat " + file + "s",
		head + "staticManifestsDir: /etc/keelson":    "staticManifestsDir: webhooks are not read from files",
		head + "kubeconfigfile: " + file:             "kubeconfigfile: WebhookAdmissionConfiguration has no such field",
		strings.Replace(head, "Webhook", "Quota", 1): `kind: "QuotaAdmissionConfiguration"`,
	} {
		err := Check([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
