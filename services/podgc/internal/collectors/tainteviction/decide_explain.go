package tainteviction

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision about a Node for one Pod on it.
func account(in Input, plan Plan, pod *corev1.Pod) explain.Account {
	for _, evicted := range plan.Evict {
		if evicted.UID == pod.UID {
			return explain.Account{Does: []string{"evicts it: it does not tolerate " + taintsOf(in.Node)}}
		}
	}
	if !plan.Waiting[pod.UID] {
		return explain.Account{}
	}
	var began time.Time
	for _, since := range plan.Since {
		if began.IsZero() || since.Before(began) {
			began = since
		}
	}
	due, _ := dueAt(pod, noExecute(in.Node), plan.Since)
	return explain.Account{Waits: []explain.Wait{{Since: began, Reason: reason,
		For: fmt.Sprintf("its tolerationSeconds to be over for %s of node %s, and then evicts it", taintsOf(in.Node),
			in.Node.Name),
		Ends: "it is " + explain.At(due) + ", or the taint is taken off"}}}
}

func taintsOf(node *corev1.Node) string {
	var all []string
	for _, taint := range noExecute(node) {
		all = append(all, taint.ToString())
	}
	return "taint " + strings.Join(all, ", ")
}
