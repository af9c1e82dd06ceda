package csrcleaner

import "keelson.dev/kit/explain"

// account explains a decision.
func account(_ Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "it is kept until its signer has issued the certificate"}
	switch {
	case plan.Delete:
		a.Do(1, "deletes it: %s", plan.Because)
	case !plan.Due.IsZero():
		a.Settled = "it is deleted at " + explain.At(plan.Due) + ", since " + plan.Because
	}
	return a
}
