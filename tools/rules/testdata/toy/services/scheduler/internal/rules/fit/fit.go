package fit

import "context"

func Undocumented(ctx context.Context) error { return ctx.Err() }
