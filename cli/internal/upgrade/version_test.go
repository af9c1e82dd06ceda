package upgrade

import "testing"

// versions are in their order.
var versions = []string{"v0.9", "v1.0.0-rc.1", "v1.0.0-rc.1-3-gabc1234", "v1.0.0-rc.2", "1.0.0", "v1.0.0-9-gabc1234",
	"v1.0.0-14-g0bc1234", "v1.0.1-dirty", "v1.2.0-2-gabc1234-dirty", "v2.0.0"}

func TestVersionsInTheirOrder(t *testing.T) {
	for i, one := range versions {
		for j, other := range versions {
			a, b := ParseVersion(one), ParseVersion(other)
			if !a.Numbered() || !b.Numbered() {
				t.Fatalf("%s or %s has no number", one, other)
			}
			if a.older(b) != (i < j) {
				t.Errorf("that %s is older than %s: %t", one, other, a.older(b))
			}
			if a.String() != one {
				t.Errorf("%s is written as %s", one, a)
			}
		}
	}
}

func TestVersionsWithoutANumber(t *testing.T) {
	for _, text := range []string{"", "devel", "unknown", "abc1234", "12345678", "abc1234-dirty", "v1", "v1.2.3 or so",
		"1.2.3.4", "v99999999999999999999.1.1"} {
		if v := ParseVersion(text); v.Numbered() {
			t.Errorf("%q has the number %v", text, v.numbered)
		}
	}
	if said := ParseVersion("").String(); said == "" {
		t.Error("a sentence has a gap where a program says no version")
	}
}

func TestMinors(t *testing.T) {
	for _, row := range []struct {
		one, than string
		want      int
	}{
		{"v1.2.3", "v1.2.0", 0}, {"v1.3.0", "v1.2.9", 1}, {"v1.1.0", "v1.3.0", -2}, {"v1.3.0-rc.1", "v1.2.0", 1},
		{"v1.2.0-7-gabc1234", "v1.2.0", 0}, {"v2.0.0", "v1.9.0", otherMajor - 9}, {"v1.9.0", "v2.0.0", 9 - otherMajor},
	} {
		if got := ParseVersion(row.one).minors(ParseVersion(row.than)); got != row.want {
			t.Errorf("%s is %d minor versions newer than %s, want %d", row.one, got, row.than, row.want)
		}
	}
	if got := ParseVersion("v1.12.3-rc.1").Minor(); got != "v1.12" {
		t.Errorf("the minor version is written %s", got)
	}
}
