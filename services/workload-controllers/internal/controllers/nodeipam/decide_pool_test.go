package nodeipam

import (
	"net/netip"
	"testing"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func TestPool(t *testing.T) {
	p := newPool(prefix("10.244.0.0/22"), 24)
	for _, step := range []struct {
		do, prefix string
		offer      string // the share that is offered then
	}{
		{"", "", "10.244.0.0/24"},
		{"take", "10.244.0.0/24", "10.244.1.0/24"},
		{"take", "10.244.2.0/23", "10.244.1.0/24"}, // two shares in one
		{"take", "10.244.1.128/25", ""},            // part of one
		{"give", "10.244.0.0/24", "10.244.0.0/24"},
		{"take", "10.245.0.0/24", "10.244.0.0/24"}, // of elsewhere
		{"take", "fd00::/64", "10.244.0.0/24"},
		{"give", "10.244.1.128/25", "10.244.0.0/24"},
		{"take", "10.244.0.0/24", "10.244.1.0/24"},
		{"take", "10.244.1.0/24", ""},
		{"take", "10.244.1.0/24", ""}, // given twice, by others
		{"give", "10.244.1.0/24", ""},
		{"give", "10.244.1.0/24", "10.244.1.0/24"},
		{"give", "10.244.2.0/23", "10.244.2.0/24"}, // what was given back last comes last
		{"take", "10.244.0.0/16", ""},
		{"give", "10.244.0.0/16", "10.244.1.0/24"},
	} {
		switch step.do {
		case "take":
			p.take(prefix(step.prefix))
		case "give":
			p.giveBack(prefix(step.prefix))
		}
		got := ""
		if share := p.offer(); share.IsValid() {
			got = share.String()
		}
		if got != step.offer {
			t.Fatalf("%s %s: offers %q, want %q", step.do, step.prefix, got, step.offer)
		}
	}
	if p.giveBack(prefix("10.245.0.0/24")) {
		t.Error("a range of elsewhere frees a share")
	}
}

func TestSharesOfBothFamilies(t *testing.T) {
	for _, row := range []struct {
		cluster string
		bits    int
		at      int
		want    string
	}{
		{"10.0.0.0/8", 24, 65535, "10.255.255.0/24"},
		{"10.244.0.0/16", 26, 5, "10.244.1.64/26"},
		{"10.244.0.0/24", 24, 0, "10.244.0.0/24"},
		{"fd00:10:244::/48", 64, 258, "fd00:10:244:102::/64"},
		{"fd00::/60", 70, 1023, "fd00:0:0:f:fc00::/70"},
	} {
		p := newPool(prefix(row.cluster), row.bits)
		share := p.share(row.at)
		if first, count := p.within(share); share != prefix(row.want) || first != row.at || count != 1 {
			t.Errorf("share %d of %s is %s (at %d, %d of them), want %s", row.at, row.cluster, share, first, count,
				row.want)
		}
	}
}
