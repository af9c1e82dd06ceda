package rootca

import "keelson.dev/kit/explain"

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "its ConfigMap " + name + " says what it must"}
	switch {
	case plan.Create != nil:
		a.Do(1, "creates the ConfigMap %s", name)
	case plan.Update != nil:
		a.Do(1, "restores the ConfigMap %s, which somebody has changed", name)
	case leaving(in.Namespace):
		a.Settled = "it is going away, and nothing is made in it any more"
	}
	return a
}
