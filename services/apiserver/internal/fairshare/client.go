package fairshare

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Client is whom a user's requests are counted for. Whoever may make ServiceAccounts has as many users as he likes, so
// those of a namespace count as one; but for the mesh's own namespace, where only who has the mesh may make some.
func Client(user string) string {
	namespace, _, err := serviceaccount.SplitUsername(user)
	if err != nil || namespace == metav1.NamespaceSystem {
		return user
	}
	return strings.TrimSuffix(serviceaccount.MakeUsername(namespace, ""), ":")
}
