package serviceaccount

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, create *corev1.ServiceAccount) explain.Account {
	a := explain.Account{Settled: "it has the ServiceAccount " + name}
	switch {
	case create != nil:
		a.Do(1, "creates the ServiceAccount %s", name)
	case leaving(in.Namespace):
		a.Settled = "it is going away, and nothing is made in it any more"
	}
	return a
}

// standing explains the state of a ServiceAccount, about which no pass decides.
func standing(account *corev1.ServiceAccount) explain.Account {
	var a explain.Account
	switch own := account.Name == name; {
	case own && account.DeletionTimestamp != nil:
		a.Settled = "it is being deleted, and is made anew when it is gone, unless its namespace goes too"
	case own:
		a.Settled = "Pods that name no ServiceAccount have it; it is made anew where somebody deletes it, as long as " +
			"its namespace stays"
	case account.DeletionTimestamp != nil:
		a.Settled = "it is being deleted, and nobody makes it anew"
	default:
		a.Settled = "Pods that name it have it; it is a user's own, and nobody makes it anew where somebody deletes it"
	}
	if !ptr.Deref(account.AutomountServiceAccountToken, true) {
		a.Settled += "; its Pods get no token unless they ask for one: its automountServiceAccountToken is false"
	}
	return a
}
