package secret

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

const (
	immutable = "field is immutable when `immutable` is set"
	redacted  = "<secret contents redacted>"
)

var dataPath = field.NewPath("data")

// Validate returns what is wrong with a defaulted Secret: its keys, its size and what its type asks for.
func Validate(s *corev1.Secret) field.ErrorList {
	errs := fieldcheck.DataKeys(s.Data, dataPath)
	size := 0
	for _, value := range s.Data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(dataPath, "", corev1.MaxSecretSize))
	}
	return append(errs, validateType(s)...)
}

// ValidateUpdate returns what is wrong with s as the successor of old. The type never changes; with immutable set,
// neither does the data.
func ValidateUpdate(s, old *corev1.Secret) field.ErrorList {
	errs := fieldcheck.Immutable(s.Type, old.Type, field.NewPath("type"))
	if ptr.Deref(old.Immutable, false) {
		if !ptr.Deref(s.Immutable, false) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutable))
		}
		if !equality.Semantic.DeepEqual(s.Data, old.Data) {
			errs = append(errs, field.Forbidden(dataPath, immutable))
		}
	}
	return append(errs, Validate(s)...)
}

func validateType(s *corev1.Secret) field.ErrorList {
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata",
				"annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return requireJSON(s, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return requireJSON(s, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if missing(s, corev1.BasicAuthUsernameKey) && missing(s, corev1.BasicAuthPasswordKey) {
			return requireKeys(s, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(dataPath.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return requireKeys(s, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

func missing(s *corev1.Secret, key string) bool {
	_, found := s.Data[key]
	return !found
}

func requireKeys(s *corev1.Secret, keys ...string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range keys {
		if missing(s, key) {
			errs = append(errs, field.Required(dataPath.Key(key), ""))
		}
	}
	return errs
}

func requireJSON(s *corev1.Secret, key string) field.ErrorList {
	if errs := requireKeys(s, key); len(errs) > 0 {
		return errs
	}
	var content map[string]any
	if err := json.Unmarshal(s.Data[key], &content); err != nil {
		return field.ErrorList{field.Invalid(dataPath.Key(key), redacted, err.Error())}
	}
	return nil
}
