// Package nodeidentity tells nodes from other users.
package nodeidentity

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

const userPrefix = "system:node:"

// Of tells which node a user is; isNode is false for everybody else. A node whose user names none has an empty name.
func Of(who user.Info) (name string, isNode bool) {
	if who == nil {
		return "", false
	}
	name, found := strings.CutPrefix(who.GetName(), userPrefix)
	if !found || !slices.Contains(who.GetGroups(), user.NodesGroup) {
		return "", false
	}
	return name, true
}
