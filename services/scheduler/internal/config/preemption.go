package config

import (
	"errors"
	"fmt"

	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// preemptionArgs are the field's and one of our own.
type preemptionArgs struct {
	schedulerv1.DefaultPreemptionArgs
	// CrossNode lets a Pod take the room of Pods on other nodes too, where these keep it from a node by a rule over a
	// domain that both nodes are in.
	CrossNode bool `json:"crossNode,omitempty"`
}

// preemptionArgs reads the arguments of the preemption, which stand at the path. Those of the field bound how many
// nodes other schedulers look at; this one looks at all.
func (p *profile) preemptionArgs(path string, raw []byte) error {
	var args preemptionArgs
	if err := decodeArgs(raw, "DefaultPreemptionArgs", &args); err != nil {
		return err
	}
	if n := args.MinCandidateNodesPercentage; n != nil && (*n < 0 || *n > 100) {
		return fmt.Errorf("args.minCandidateNodesPercentage: %d, it must be from 0 to 100", *n)
	}
	if n := args.MinCandidateNodesAbsolute; n != nil && *n < 0 {
		return fmt.Errorf("args.minCandidateNodesAbsolute: %d, it must not be less than 0", *n)
	}
	if p, a := args.MinCandidateNodesPercentage, args.MinCandidateNodesAbsolute; p != nil && a != nil && *p+*a == 0 {
		return errors.New("args: minCandidateNodesPercentage and minCandidateNodesAbsolute must not both be 0")
	}
	if args.MinCandidateNodesPercentage != nil || args.MinCandidateNodesAbsolute != nil {
		p.note(path + ".args: minCandidateNodesPercentage and minCandidateNodesAbsolute bound nothing, " + everyNode)
	}
	p.across = args.CrossNode
	return nil
}
