// Package webhookconfig checks the configuration of MutatingAdmissionWebhook and ValidatingAdmissionWebhook: a
// WebhookAdmissionConfiguration, which names a kubeconfig by whose users the apiserver identifies to webhooks.
package webhookconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apiv1 "k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1"

	"keelson.dev/kit/configfile"
)

var kind = configfile.Kind{APIVersion: apiv1.SchemeGroupVersion.String(), Name: "WebhookAdmissionConfiguration"}

// Check says what is wrong with a configuration. Webhooks come from the API alone.
func Check(data []byte) error {
	said := &apiv1.WebhookAdmission{}
	if err := kind.Decode(data, said); err != nil {
		return err
	}
	switch file := said.KubeConfigFile; {
	case said.StaticManifestsDir != "":
		return errors.New("staticManifestsDir: webhooks are not read from files")
	case file == "":
		return nil
	case !filepath.IsAbs(file):
		return fmt.Errorf("kubeConfigFile: %q must be an absolute path", file)
	default:
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("kubeConfigFile: %w", err)
		}
	}
	return nil
}
