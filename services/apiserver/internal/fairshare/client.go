package fairshare

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// class is which of the totals a client's things are counted of: however much tenants and nodes take, the mesh's own
// daemons go on.
type class int

const (
	tenants class = iota
	nodes
	mesh
	// Classes is how many there are.
	Classes
)

// classOf is the class of a client. Only the owner of the mesh gives a client a name of its own.
func classOf(client string) class {
	switch {
	case strings.HasPrefix(client, nodePrefix):
		return nodes
	case strings.HasPrefix(client, meshAccounts):
		return mesh
	case client == user.Anonymous, strings.HasPrefix(client, serviceaccount.ServiceAccountUsernamePrefix):
		return tenants
	case strings.HasPrefix(client, "system:"):
		return mesh
	}
	return tenants
}

// Trusted is whether a user is one of the mesh's own daemons or of its masters: they write what the mesh needs.
func Trusted(u user.Info) bool {
	return OfMesh(Client(u.GetName())) || slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

// OfMesh is whether a client is one of the mesh's own daemons.
func OfMesh(client string) bool { return classOf(client) == mesh }

// nodePrefix begins the name of each node, meshAccounts that of each ServiceAccount of the mesh's own namespace.
const (
	nodePrefix   = "system:node:"
	meshAccounts = serviceaccount.ServiceAccountUsernamePrefix + metav1.NamespaceSystem + ":"
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
