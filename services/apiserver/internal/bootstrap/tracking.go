package bootstrap

import (
	"context"
	"time"

	"keelson.dev/services/apiserver/internal/legacytoken"
)

// ensureTracking says in a ConfigMap since which day the use of the tokens in Secrets is recorded. A day that is there
// stays.
func (b *Bootstrapper) ensureTracking(ctx context.Context) error {
	err := b.ensureConfigMap(ctx, legacytoken.TrackingName, func(have map[string]string) map[string]string {
		if begins := legacytoken.Tracking(have, time.Now()); begins != nil {
			return begins
		}
		return have
	})
	return describe("ConfigMap", legacytoken.TrackingName, err)
}
