// Package simulation drives the decisions of several controllers together over a cluster in memory: no API, no
// goroutine, no clock. Writes are refused, controllers end after one, see what there is late, or begin with an old
// view. The tests let everything happen in a random order that a seed repeats, and check what must hold at every
// step.
package simulation
