package daemon

import "testing"

func TestOwnVersion(t *testing.T) {
	defer func(was string) { version = was }(version)
	for stamp, want := range map[string]string{
		"v0.1.0":                     "v0.1.0",
		"v0.1.0-rc.1-14-gabc1234":    "v0.1.0-rc.1-14-gabc1234",
		"abc1234-dirty":              "abc1234-dirty",
		"0~20261127120000.gabc+dirt": "0-20261127120000.gabc-dirt",
	} {
		version = stamp
		said := WithVersion("v1.37.2")
		if own, ok := OwnVersion(said); said != "v1.37.2+keelson."+want || !ok || own != want {
			t.Errorf("%s is said as %s and read as %q, %t", stamp, said, own, ok)
		}
	}
	for _, foreign := range []string{"", "v1.37.2", "v1.30.0+k3s1"} {
		if own, ok := OwnVersion(foreign); ok || own != "" {
			t.Errorf("%q is taken for Keelson's %q", foreign, own)
		}
	}
}
