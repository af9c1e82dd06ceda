package steps

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dockerEntry is one registry's entry in a docker configuration.
type dockerEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// credentialsIn returns what a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg says about the
// image's registry.
func credentialsIn(secret *corev1.Secret, ref reference.Named) []*cri.AuthConfig {
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
	var out []*cri.AuthConfig
	for registry, entry := range entries {
		if matches(registry, ref) {
			out = append(out, entry.auth())
		}
	}
	return out
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

// dockerHub is how docker configurations name the registry docker.io.
const dockerHub = "index.docker.io"

// matches reports whether a configuration's entry, HOST or HOST/PATH with or without a scheme, is about the image.
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
