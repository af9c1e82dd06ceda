package podsecurity

import (
	"k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/scheme"
	apiv1 "k8s.io/pod-security-admission/admission/api/v1"
	"k8s.io/pod-security-admission/admission/api/validation"

	"keelson.dev/kit/configfile"
)

var kind = configfile.Kind{APIVersion: apiv1.SchemeGroupVersion.String(), Name: "PodSecurityConfiguration"}

// Check says what is wrong with a PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

// parse returns the defaults and exemptions of a file. An empty file changes no Pod: every level is privileged, and no
// user is exempt.
func parse(data []byte) (*api.PodSecurityConfiguration, error) {
	if len(data) == 0 {
		return load.LoadFromData(nil)
	}
	said := &apiv1.PodSecurityConfiguration{}
	if err := kind.Decode(data, said); err != nil {
		return nil, err
	}
	scheme.Scheme.Default(said)
	configuration := &api.PodSecurityConfiguration{}
	if err := scheme.Scheme.Convert(said, configuration, nil); err != nil {
		return nil, err
	}
	return configuration, validation.ValidatePodSecurityConfiguration(configuration).ToAggregate()
}
