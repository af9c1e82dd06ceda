// Package stack gives a goroutine that is to handle a request the stack that it will need.
//
// A goroutine starts with a few KiB. Each time that they do not suffice, the runtime moves everything to a stack of
// twice the size, with all frames that are on it by then: a request that is written through admission, store and log
// needs between 16 and 32 KiB. Grown while it is empty, it is moved once, and nothing is on it.
package stack

// room is what a frame must take so that the stack has 32 KiB.
const room = 28 << 10

// Grow makes the stack of the goroutine that calls it large enough for a request. It costs nothing where the stack is.
func Grow() { take(0) }

//go:noinline
func take(i int) byte {
	var frame [room]byte
	frame[i] = 1
	return frame[room-1-i]
}
