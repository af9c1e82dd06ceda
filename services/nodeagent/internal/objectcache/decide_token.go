package objectcache

import "time"

const (
	// maxTokenAge is when even a long-lived token is renewed.
	maxTokenAge = 24 * time.Hour
	// tokenRetry is how long to wait when a renewal failed and the old token is still good.
	tokenRetry = 10 * time.Second
)

// refreshAt returns when a token is to be renewed: after 80 % of its life, or after a day.
func refreshAt(issued, expires time.Time) time.Time {
	return issued.Add(min(expires.Sub(issued)*8/10, maxTokenAge))
}
