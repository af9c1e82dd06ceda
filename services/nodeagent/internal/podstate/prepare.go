package podstate

import "slices"

// prepare sets up the preparation steps, one after the other, and reports whether all are set up.
func (v *view) prepare() bool {
	for _, step := range v.in.Steps {
		if !v.in.Memory.Prepared[step] {
			v.act(Action{Key: Key{Kind: Prepare, Object: step}})
			return false
		}
	}
	return true
}

// refresh refreshes the steps that are due, in their order; containers do not wait for it.
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

// release takes down the preparation steps in reverse order, and reports whether all are taken down.
func (v *view) release() bool {
	for _, step := range slices.Backward(v.in.Steps) {
		if !v.in.Memory.Released[step] {
			v.act(Action{Key: Key{Kind: Release, Object: step}})
			return false
		}
	}
	return true
}
