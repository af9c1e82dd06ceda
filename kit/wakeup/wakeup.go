// Package wakeup lets any number of goroutines signal another that there is something to do.
package wakeup

// Signal wakes up the one goroutine that receives from it. What is sent while a signal waits already is one with that:
// who receives must look for all that there is to do, and has then missed nothing that was done before it received.
type Signal chan struct{}

// New returns a signal that has not been sent.
func New() Signal { return make(Signal, 1) }

// Send wakes the receiver up, now or as soon as it receives. It never blocks.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // one waits already
	}
}
