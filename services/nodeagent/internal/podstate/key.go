package podstate

// Key identifies an operation: at most one of a key is in flight.
type Key struct {
	// Kind is what is done, Object to what: a step of the preparation, a container, an instance or a sandbox. Object is
	// empty where there is but one.
	Kind   Kind
	Object string
}

// names are the kinds of operations as people read them.
var names = map[Kind]string{
	Prepare: "prepare", Release: "release", DeletePod: "delete", CreateSandbox: "sandbox/create",
	StopSandbox:   "sandbox/stop",
	RemoveSandbox: "sandbox/remove", StartContainer: "start", RunPostStart: "hook", StopContainer: "stop",
	RemoveContainer: "remove", ResizePod: "resize",
}

// String is for people: start/web.
func (k Key) String() string {
	if k.Object == "" {
		return names[k.Kind]
	}
	return names[k.Kind] + "/" + k.Object
}

// StartKey is the key of the operation that starts a container.
func StartKey(container string) Key { return Key{Kind: StartContainer, Object: container} }
