package plan

import (
	"errors"
	"fmt"
	"slices"
)

// Authorities describes the authorities in the folder pki that the mesh trusts. Each one is identified by the hash
// of its public key.
type Authorities struct {
	// Bundle are the authorities in ca.crt, which all clients and servers trust. The first one signs; certificates
	// that another one has signed are renewed.
	Bundle []string
	// Key is the authority whose key is ca.key.
	Key string
	// Next is the authority of ca-next.crt and ca-next.key; empty if they are not a pair.
	Next string
	// Bridge is the authority for which BridgeBy vouches in ca-bridge.crt: a client that trusts BridgeBy also
	// trusts Bridge.
	Bridge, BridgeBy string
}

// RotationStep is a step of the rotation to another authority. A step that keel did not finish before it was
// killed is due again.
type RotationStep string

const (
	// RotationRest leaves the files as they are.
	RotationRest RotationStep = ""
	// RotationMake makes the next authority, for which the one that signs vouches. Nothing reads it yet.
	RotationMake RotationStep = "making the next authority"
	// RotationTrust adds the next authority to the trusted bundle. The old one goes on signing.
	RotationTrust RotationStep = "trusting the next authority"
	// RotationSwitch lets the next authority sign. The old one stays trusted.
	RotationSwitch RotationStep = "signing by the new authority"
	// RotationTidy removes the ca-next files: the next authority is now the mesh's authority.
	RotationTidy RotationStep = "removing copies of the authority"
	// RotationFinish removes the old authority from the trusted bundle.
	RotationFinish RotationStep = "trusting the new authority alone"
)

// Heard reports whether the daemons and other machines have to learn of the step.
func (s RotationStep) Heard() bool {
	return s == RotationTrust || s == RotationSwitch || s == RotationFinish
}

// DecideRotation returns the next step towards another authority. It depends on the files on disk alone. If a
// rotation has come to rest with both authorities trusted, finish removes the old one. If only one authority is
// trusted, a rotation begins unless finish is set.
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

// double is DecideRotation while two authorities are trusted.
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

// Switching reports whether keel was killed between writing the key and the bundle in RotationSwitch: nothing
// signs until that step is done.
func (a Authorities) Switching() bool {
	return len(a.Bundle) == 2 && a.Bundle[0] != a.Bundle[1] && a.Key == a.Bundle[1] && a.Next == a.Key
}

// bridged reports whether a client that trusts the second authority also trusts the first.
func (a Authorities) bridged(to, by string) bool { return a.Bridge == to && a.BridgeBy == by }

func (a Authorities) foreign() error {
	return fmt.Errorf("pki/ca.crt holds %d authorities, and no rotation has put them there: leave in it the "+
		"certificate alone that pki/ca.key is the key of", len(a.Bundle))
}

// AuthorityAnnotation is the annotation in which a Node names the authority that its machine follows: keel join
// has had the agent read the bundle whose first authority that is, and has seen that it signed the agent's client
// certificate.
const AuthorityAnnotation = "keelson.dev/authority"

// Follower describes how far a node on another machine has left the old authority behind.
type Follower struct {
	// Node is its name, Authority its AuthorityAnnotation.
	Node, Authority string
	// Serving is the authority that signed the serving certificate of its API; Fault says why that is not known.
	Serving, Fault string
}

// NotFollowing lists, in one sentence each, the nodes that would be lost without the old authority, and what to
// do.
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
