package credentialprovider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// answer is what a plugin has answered.
type answer struct {
	// kind says for which images the answer holds.
	kind credentialproviderv1.PluginCacheKeyType
	// lasts is how long it may be kept; nil leaves that to the configuration.
	lasts *time.Duration
	// auth are credentials by the patterns of the images that they are for.
	auth map[string]credentialproviderv1.AuthConfig
}

const responseKind = "CredentialProviderResponse"

// readAnswer reads what a plugin printed. Its errors quote nothing in which credentials may stand.
func readAnswer(printed []byte) (answer, error) {
	// Text instead of the API's duration, whose error quotes it.
	var response struct {
		Kind          string                                     `json:"kind"`
		APIVersion    string                                     `json:"apiVersion"`
		CacheKeyType  credentialproviderv1.PluginCacheKeyType    `json:"cacheKeyType"`
		CacheDuration *string                                    `json:"cacheDuration"`
		Auth          map[string]credentialproviderv1.AuthConfig `json:"auth"`
	}
	if strings.TrimSpace(string(printed)) == "" {
		return answer{}, errors.New("printed no answer")
	}
	err := json.Unmarshal(printed, &response)
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) && mistyped.Field != "" {
		return answer{}, fmt.Errorf("printed an answer whose field %.60q has the wrong type", outermost(mistyped.Field))
	}
	if err != nil {
		return answer{}, errors.New("printed something else than a " + responseKind + " in JSON")
	}
	if response.APIVersion != version || response.Kind != responseKind {
		return answer{}, fmt.Errorf("printed kind %.60q of apiVersion %.60q, it must be %s of %s", response.Kind,
			response.APIVersion, responseKind, version)
	}
	out := answer{kind: response.CacheKeyType, auth: response.Auth}
	switch out.kind {
	case credentialproviderv1.ImagePluginCacheKeyType, credentialproviderv1.RegistryPluginCacheKeyType,
		credentialproviderv1.GlobalPluginCacheKeyType:
	default:
		return answer{}, fmt.Errorf("printed cacheKeyType %.60q, it must be Image, Registry or Global", out.kind)
	}
	if response.CacheDuration != nil {
		lasts, err := time.ParseDuration(*response.CacheDuration)
		if err != nil {
			return answer{}, errors.New("printed a cacheDuration that is no duration, like 10m")
		}
		out.lasts = &lasts
	}
	return out, nil
}

// outermost returns the part of a field's path that no plugin chooses.
func outermost(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// Credential is what a provider gave for an image.
type Credential struct {
	Username, Password string
	// Account is the service account for which the provider gave it, the zero value for a Pod without one; nil if it
	// is the node's, for all of its Pods.
	Account *kubeletv1beta1.ImagePullServiceAccount
}

// answered is the answer of one provider, and for whom it is.
type answered struct {
	answer
	account *kubeletv1beta1.ImagePullServiceAccount
}

// pick returns the credentials for an image in the order in which they are to be tried: the keys backwards, so that
// longer ones come before shorter ones and names before *; for the same key in the order of the providers.
func pick(image reference.Named, answers []answered) []Credential {
	type found struct {
		key string
		Credential
	}
	var all []found
	for _, a := range answers {
		for key, auth := range a.auth {
			if p, err := parsePattern(key); err == nil && p.matches(image) {
				all = append(all, found{key, Credential{auth.Username, auth.Password, a.account}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.key, a.key) })
	out := make([]Credential, len(all))
	for i := range all {
		out[i] = all[i].Credential
	}
	return out
}
