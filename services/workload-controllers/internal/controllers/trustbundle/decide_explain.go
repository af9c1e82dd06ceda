package trustbundle

import (
	"slices"

	"keelson.dev/kit/explain"
)

// account explains a decision about the bundle of this name.
func account(in Input, plan Plan, name string) explain.Account {
	a := explain.Account{Settled: "it holds the CA by which the apiserver is known"}
	if plan.Create != nil {
		a.Do(1, "creates the ClusterTrustBundle %s", plan.Create.Name)
	}
	if plan.Update != nil {
		a.Do(1, "restores the certificates of %s, which somebody has changed", plan.Update.Name)
	}
	switch {
	case name == nameOf(in.RootCA):
	case slices.ContainsFunc(plan.Delete, func(b *bundle) bool { return b.Name == name }):
		a.Do(1, "deletes it: it holds another CA than the apiserver's")
	default:
		a.Settled = "it holds another CA than the apiserver's, and goes"
	}
	return a
}
