package serviceaccount

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account tells what a decision came to.
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
