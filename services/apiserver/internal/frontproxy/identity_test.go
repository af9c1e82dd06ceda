package frontproxy

import (
	"testing"
	"time"
)

func pair(t *testing.T, now time.Time) Pair {
	t.Helper()
	p, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A pair is kept until thirty days before its end, and replaced when anything about it is wrong.
func TestCheck(t *testing.T) {
	now := time.Date(2026, time.January, 10, 12, 0, 0, 0, time.UTC)
	own, other := pair(t, now), pair(t, now)
	end := now.Add(10 * 365 * 24 * time.Hour)
	for name, row := range map[string]struct {
		pair Pair
		at   time.Time
		good bool
	}{
		"new":                   {own, now, true},
		"30 days before":        {own, end.Add(-30 * 24 * time.Hour), true},
		"just after":            {own, end.Add(-30*24*time.Hour + time.Second), false},
		"none":                  {Pair{}, now, false},
		"another's key":         {Pair{own.Authority, own.Certificate, other.Key}, now, false},
		"another's certificate": {Pair{own.Authority, other.Certificate, other.Key}, now, false},
		"no authority":          {Pair{nil, own.Certificate, own.Key}, now, false},
	} {
		if err := row.pair.Check(row.at); (err == nil) != row.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIdentity(t *testing.T) {
	var i Identity
	if got, err := i.Certificate(nil); err != nil || len(got.Certificate) != 0 {
		t.Errorf("without a pair: %v, %v, want an empty certificate", got, err)
	}
	if err := i.Use(Pair{}); err == nil {
		t.Error("an empty pair is used")
	}
	if err := i.Use(pair(t, time.Now())); err != nil {
		t.Fatal(err)
	}
	if got, err := i.Certificate(nil); err != nil || got.Leaf.Subject.CommonName != "keelson-front-proxy" {
		t.Errorf("the certificate is %v, %v", got, err)
	}
}
