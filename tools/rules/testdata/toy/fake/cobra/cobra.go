// Package cobra stands in for the library of that name.
package cobra

import "context"

// Command is one.
type Command struct{}

// Context is that of its caller.
func (*Command) Context() context.Context { return nil }
