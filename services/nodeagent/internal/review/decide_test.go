package review

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func jwt(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

// A token is not remembered beyond the expiry that it contains.
func TestLifeOf(t *testing.T) {
	now := time.Unix(1000, 500e6)
	for _, row := range []struct {
		token string
		want  time.Duration
	}{
		{"opaque", time.Minute},
		{"two.parts", time.Minute},
		{"e30.!.c2ln", time.Minute},
		{jwt("{"), time.Minute},
		{jwt("{}"), time.Minute},
		{jwt(`{"exp":"1001"}`), time.Minute},
		{jwt(`{"exp":2000}`), time.Minute},
		{jwt(`{"exp":1e300}`), time.Minute},
		{jwt(`{"exp":1060.5}`), time.Minute},
		{jwt(`{"exp":1060}`), 59500 * time.Millisecond},
		{jwt(`{"exp":1001}`), 500 * time.Millisecond},
		{jwt(`{"exp":1000}`), 0},
		{jwt(`{"exp":-1e300}`), 0},
	} {
		if got := lifeOf(row.token, now, time.Minute); got != row.want {
			t.Errorf("%s: %v, want %v", row.token, got, row.want)
		}
	}
}

// An address may have 20 refused questions, and one more each second.
func TestBlame(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		name  string
		asked int
		spare int
		after time.Duration
		want  bool
	}{
		{"nothing", 0, 0, 0, true},
		{"as many as may be", 19, 0, 0, true},
		{"too many", 20, 0, 0, false},
		{"too many, a moment ago", 20, 0, time.Second - 1, false},
		{"too many, a second ago", 20, 0, time.Second, true},
		{"one was a yes", 20, 1, 0, true},
		{"long ago", 20, 0, time.Hour, true},
	} {
		var b blame
		for i := range row.asked {
			var ok bool
			if b, ok = b.with(now); !ok {
				t.Errorf("%s: number %d is refused", row.name, i)
			}
		}
		for range row.spare {
			b = b.without()
		}
		next, got := b.with(now.Add(row.after))
		if got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if _, again := next.with(now.Add(row.after)); again && row.asked == 20 && row.after < time.Hour {
			t.Errorf("%s: two at once", row.name)
		}
	}
}

func TestNeighbours(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := neighbours(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := fmt.Sprint(neighbours(netip.Addr{})); got != "invalid Prefix" {
		t.Errorf("no address: %s", got)
	}
}
