package podstate

import "slices"

// prepare sets up what the Pod stands on, one step after the other, and says whether all of it stands.
func (v *view) prepare() bool {
	for _, step := range v.in.Steps {
		if !v.in.Memory.Prepared[step] {
			v.act(Action{Key: Key{Kind: Prepare, Object: step}})
			return false
		}
	}
	return true
}

// refresh brings the steps up to date whose time has come, in their order; containers do not wait for it.
func (v *view) refresh() {
	for _, step := range v.in.Steps {
		switch at, set := v.in.Memory.RefreshAt[step]; {
		case !set:
		case at.After(v.in.Now):
			v.wake(at)
		default:
			v.act(Action{Key: Key{Kind: Prepare, Object: step}})
			return
		}
	}
}

// release takes down what the Pod stood on, in the reverse of the order in which it was set up, and says whether
// nothing of it is left.
func (v *view) release() bool {
	for _, step := range slices.Backward(v.in.Steps) {
		if !v.in.Memory.Released[step] {
			v.act(Action{Key: Key{Kind: Release, Object: step}})
			return false
		}
	}
	return true
}
