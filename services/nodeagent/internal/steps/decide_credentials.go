package steps

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// credential is one way to pull an image; the zero value is a pull without credentials.
type credential struct {
	auth *cri.AuthConfig
	// from is the Secret that contains it.
	from *kubeletv1beta1.ImagePullSecret
	// account is the service account for which a credential provider gave it.
	account *kubeletv1beta1.ImagePullServiceAccount
}

// dockerEntry is one registry's entry in a docker configuration.
type dockerEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// credentialsIn returns the credentials for the image's registry in a Secret of type kubernetes.io/dockerconfigjson
// or kubernetes.io/dockercfg, in the order of the entries' names.
func credentialsIn(secret *corev1.Secret, ref reference.Named) []credential {
	var entries map[string]dockerEntry
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]dockerEntry `json:"auths"`
		}
		if json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &file) != nil {
			return nil
		}
		entries = file.Auths
	case corev1.SecretTypeDockercfg:
		if json.Unmarshal(secret.Data[corev1.DockerConfigKey], &entries) != nil {
			return nil
		}
	}
	var out []credential
	for _, registry := range slices.Sorted(maps.Keys(entries)) {
		if matches(registry, ref) {
			auth := entries[registry].auth()
			out = append(out, credential{auth: auth, from: &kubeletv1beta1.ImagePullSecret{UID: string(secret.UID),
				Namespace: secret.Namespace, Name: secret.Name, CredentialHash: hashOf(auth)}})
		}
	}
	return out
}

// hashOf returns a hash that identifies the content of credentials in records.
func hashOf(auth *cri.AuthConfig) string {
	sum := sha256.New()
	for _, part := range []string{auth.Username, auth.Password, auth.IdentityToken} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (e dockerEntry) auth() *cri.AuthConfig {
	out := &cri.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}
	if out.Username == "" && e.Auth != "" {
		if text, err := base64.StdEncoding.DecodeString(e.Auth); err == nil {
			out.Username, out.Password, _ = strings.Cut(string(text), ":")
		}
	}
	return out
}

// dockerHub is the name of the registry docker.io in docker configurations.
const dockerHub = "index.docker.io"

// matches reports whether a configuration's entry, HOST or HOST/PATH with or without a scheme, matches the image.
func matches(entry string, ref reference.Named) bool {
	entry = strings.TrimPrefix(strings.TrimPrefix(entry, "https://"), "http://")
	host, path, _ := strings.Cut(strings.TrimSuffix(entry, "/"), "/")
	if host == dockerHub {
		host, path = "docker.io", ""
	}
	path = strings.TrimSuffix(strings.TrimSuffix(path, "v1"), "v2")
	return host == reference.Domain(ref) && strings.HasPrefix(reference.Path(ref)+"/", strings.TrimSuffix(path, "/")+
		"/") ||
		host == reference.Domain(ref) && path == ""
}
