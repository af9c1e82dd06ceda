package plan

import (
	"errors"
	"fmt"
	"slices"
)

// Authorities are what stands in the folder pki of whom the mesh believes. Each authority is named by the hash of its
// public key.
type Authorities struct {
	// Bundle are those of ca.crt, whom everybody trusts. The first signs: what another one has signed is made anew.
	Bundle []string
	// Key is whose ca.key is.
	Key string
	// Next is whose ca-next.crt and ca-next.key are; empty where they are no pair.
	Next string
	// Bridge is for whom ca-bridge.crt vouches, BridgeBy who does: who trusts the latter trusts the former by it.
	Bridge, BridgeBy string
}

// RotationStep is what brings another authority nearer. Each is done wholly or is due again, wherever keel was killed.
type RotationStep string

const (
	// RotationRest leaves the files as they are.
	RotationRest RotationStep = ""
	// RotationMake makes the next authority, for which the one that signs vouches. Nobody reads it yet.
	RotationMake RotationStep = "making the next authority"
	// RotationTrust adds the next authority to those whom everybody trusts. The old one goes on signing.
	RotationTrust RotationStep = "trusting the next authority"
	// RotationSwitch lets the next authority sign. The old one stays trusted.
	RotationSwitch RotationStep = "signing by the new authority"
	// RotationTidy removes what was the next authority's, which is the mesh's now.
	RotationTidy RotationStep = "removing copies of the authority"
	// RotationFinish takes the old authority from those whom everybody trusts.
	RotationFinish RotationStep = "trusting the new authority alone"
)

// Heard tells whether others have to learn of the step.
func (s RotationStep) Heard() bool {
	return s == RotationTrust || s == RotationSwitch || s == RotationFinish
}

// DecideRotation tells the next step towards another authority, by what stands on disk alone. A rotation that rests is
// to be finished, and only then the old authority goes; without one, a rotation begins unless it is to be finished.
func DecideRotation(a Authorities, finish bool) (RotationStep, error) {
	switch len(a.Bundle) {
	case 0:
		return RotationRest, errors.New("pki/ca.crt holds no certificate of an authority")
	case 1:
		return a.single(finish)
	case 2:
		return a.double(finish)
	}
	return RotationRest, a.foreign()
}

// single is DecideRotation while one authority is trusted.
func (a Authorities) single(finish bool) (RotationStep, error) {
	signs := a.Bundle[0]
	switch {
	case a.Key != signs:
		return RotationRest, errors.New("pki/ca.key is not the key of pki/ca.crt: put back the one that is")
	case a.Next == signs:
		return RotationTidy, nil
	case a.Next == "" && finish:
		return RotationRest, nil
	case a.Next == "" || !a.bridged(a.Next, signs):
		return RotationMake, nil
	}
	return RotationTrust, nil
}

// double is DecideRotation while two are.
func (a Authorities) double(finish bool) (RotationStep, error) {
	first, second := a.Bundle[0], a.Bundle[1]
	switch {
	case a.Switching():
		return RotationSwitch, nil
	case a.Key != first:
		return RotationRest, errors.New("pki/ca.key is not the key of the first authority of pki/ca.crt: put back " +
			"the one that is")
	case a.Next == second && a.bridged(second, first):
		return RotationSwitch, nil
	case a.Next == second:
		return RotationMake, nil
	case a.Next == first:
		return RotationTidy, nil
	case !a.bridged(first, second):
		return RotationRest, a.foreign()
	case finish:
		return RotationFinish, nil
	}
	return RotationRest, nil
}

// Switching tells that keel was killed between the key and the bundle of RotationSwitch: nothing signs until that is
// done.
func (a Authorities) Switching() bool {
	return len(a.Bundle) == 2 && a.Bundle[0] != a.Bundle[1] && a.Key == a.Bundle[1] && a.Next == a.Key
}

// bridged tells whether who trusts the second trusts the first too.
func (a Authorities) bridged(to, by string) bool { return a.Bridge == to && a.BridgeBy == by }

func (a Authorities) foreign() error {
	return fmt.Errorf("pki/ca.crt holds %d authorities, and no rotation has put them there: leave in it the "+
		"certificate alone that pki/ca.key is the key of", len(a.Bundle))
}

// AuthorityAnnotation is where a Node names the authority that its machine follows: keel join has had the agent read
// the bundle of which that is the first, and has seen its client certificate signed by it.
const AuthorityAnnotation = "keelson.dev/authority"

// Follower is a node of another machine, as far as the old authority is concerned.
type Follower struct {
	// Node is its name, Authority its AuthorityAnnotation.
	Node, Authority string
	// Serving is who has signed what its API shows, Fault why that is not known.
	Serving, Fault string
}

// NotFollowing says, a sentence each, which nodes would be lost without the old authority, and what to do.
func NotFollowing(authority string, followers []Follower) (sentences []string) {
	for _, f := range followers {
		switch {
		case f.Authority != authority:
			sentences = append(sentences, fmt.Sprintf("node %s does not follow the new authority: run keel join on "+
				"its machine, or kubectl delete node %s if that is no more", f.Node, f.Node))
		case f.Fault != "":
			sentences = append(sentences, fmt.Sprintf("node %s cannot be asked for its serving certificate (%s)",
				f.Node, f.Fault))
		case f.Serving != authority:
			sentences = append(sentences, fmt.Sprintf("node %s shows a serving certificate of the old authority: "+
				"approve its request, which kubectl get csr "+
				"--field-selector=spec.signerName=kubernetes.io/kubelet-serving shows", f.Node))
		}
	}
	slices.Sort(sentences)
	return sentences
}
