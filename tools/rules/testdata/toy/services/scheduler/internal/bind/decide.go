package bind

import (
	"context"
	"net/netip"
	"os"
	"time"
)

// Decide reads what a decision must not read.
func Decide(ctx context.Context, at netip.Addr) (time.Time, string) {
	if ctx.Err() != nil {
		return time.Now(), os.Args[0]
	}
	return time.Time{}, at.String()
}
