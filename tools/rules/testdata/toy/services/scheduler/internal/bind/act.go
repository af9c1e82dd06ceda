package bind

import (
	"context"
	"os"
	"time"
)

// Act may do what Decide may not.
func Act(ctx context.Context) (time.Time, string) {
	return time.Now(), os.Args[0] + context.Cause(ctx).Error()
}
