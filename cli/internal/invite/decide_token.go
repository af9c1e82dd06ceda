package invite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"keelson.dev/cli/internal/discovery"
)

// Group is the group of the tokens with which machines join, in addition to system:bootstrappers, the group of
// every token.
const Group = "system:bootstrappers:keelson:node"

// secretOf returns the Secret of a token with this lifetime; 0 means for ever.
func secretOf(token discovery.Token, life time.Duration, description string, now time.Time) *corev1.Secret {
	data := map[string]string{
		bootstrapapi.BootstrapTokenIDKey:               token.ID,
		bootstrapapi.BootstrapTokenSecretKey:           token.Secret,
		bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
		bootstrapapi.BootstrapTokenExtraGroupsKey:      Group,
	}
	if description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = description
	}
	if life > 0 {
		data[bootstrapapi.BootstrapTokenExpirationKey] = now.Add(life).UTC().Format(time.RFC3339)
	}
	return &corev1.Secret{Type: bootstrapapi.SecretTypeBootstrapToken, StringData: data,
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
			Name: bootstrapapi.BootstrapTokenSecretPrefix + token.ID}}
}

// Listed is a token in the form that keel lists.
type Listed struct {
	// Token is the whole token, TTL and Expires say how long it is still valid; Usages, Groups and Description say
	// what it is for.
	Token, TTL, Expires, Usages, Groups, Description string
}

// list converts the Secrets of tokens, sorted by token.
func list(secrets []corev1.Secret, now time.Time) []Listed {
	var all []Listed
	for _, secret := range secrets {
		field := func(key string) string { return string(secret.Data[key]) }
		token := discovery.Token{ID: field(bootstrapapi.BootstrapTokenIDKey),
			Secret: field(bootstrapapi.BootstrapTokenSecretKey)}
		one := Listed{Token: token.String(),
			TTL: "<forever>", Expires: "<never>", Usages: usages(secret.Data),
			Groups:      field(bootstrapapi.BootstrapTokenExtraGroupsKey),
			Description: field(bootstrapapi.BootstrapTokenDescriptionKey)}
		if expires := field(bootstrapapi.BootstrapTokenExpirationKey); expires != "" {
			one.Expires, one.TTL = expires, "<invalid>" // such a token is not accepted
			if at, err := time.Parse(time.RFC3339, expires); err == nil {
				one.TTL = "<expired>"
				if left := at.Sub(now); left > 0 {
					one.TTL = duration.ShortHumanDuration(left)
				}
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Listed) int { return strings.Compare(a.Token, b.Token) })
	return all
}

func usages(data map[string][]byte) string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		usage, ok := strings.CutPrefix(key, bootstrapapi.BootstrapTokenUsagePrefix)
		if ok && string(data[key]) == "true" {
			names = append(names, usage)
		}
	}
	return strings.Join(names, ",")
}

// CheckLife validates the lifetime of a token.
func CheckLife(life time.Duration) error {
	if life < 0 || life > 0 && life < time.Second {
		return fmt.Errorf("--ttl: %v must be a second or more, or 0 for a token that never expires", life)
	}
	return nil
}

// JoinCommand returns the command to run on a machine that is to join. The pins are those of all trusted
// authorities.
func JoinCommand(address string, token discovery.Token, pins []string) string {
	line := fmt.Sprintf("keel join %s --token %s", address, token)
	for _, pin := range pins {
		line += " " + discovery.PinFlag + " " + pin
	}
	return line
}
