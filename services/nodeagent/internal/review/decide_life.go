package review

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// lifeOf is how long the user of a token that the API has accepted is remembered: for ttl, but not beyond the end of
// the token, which a JSON web token tells. What the API has accepted says the truth about that.
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
