package podstate

// Key identifies an operation: at most one operation per key is in flight.
type Key struct {
	// Kind is what is done, Object what it is done to: a preparation step, a container, an instance or a sandbox.
	// Object is empty where only one exists.
	Kind   Kind
	Object string
}

// names are the readable names of the kinds of operations.
var names = map[Kind]string{
	Prepare: "prepare", Release: "release", DeletePod: "delete", CreateSandbox: "sandbox/create",
	StopSandbox:   "sandbox/stop",
	RemoveSandbox: "sandbox/remove", StartContainer: "start", RunPostStart: "hook", StopContainer: "stop",
	RemoveContainer: "remove", ResizePod: "resize",
}

// String returns a readable form: start/web.
func (k Key) String() string {
	if k.Object == "" {
		return names[k.Kind]
	}
	return names[k.Kind] + "/" + k.Object
}

// StartKey is the key of the operation that starts a container.
func StartKey(container string) Key { return Key{Kind: StartContainer, Object: container} }
