package review

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// lifeOf returns how long the user of an accepted token is remembered: for ttl, but not beyond the token's expiry,
// which a JSON web token contains. Since the API has accepted the token, its expiry can be trusted.
func lifeOf(token string, now time.Time, ttl time.Duration) time.Duration {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, isJWT := strings.Cut(rest, ".")
	if !isJWT {
		return ttl
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ttl
	}
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Expires == nil {
		return ttl
	}
	left := *claims.Expires - float64(now.UnixMilli())/1000
	if left >= ttl.Seconds() {
		return ttl
	}
	return time.Duration(max(left, 0) * float64(time.Second))
}
