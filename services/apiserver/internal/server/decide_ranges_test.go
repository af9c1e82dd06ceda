package server

import (
	"fmt"
	"testing"
)

func TestServiceRanges(t *testing.T) {
	const one = ` must be one range, or one of IPv4 and one of IPv6`
	for text, want := range map[string]string{
		"10.96.0.0/16":             "[10.96.0.0/16]",
		"10.96.3.4/16":             "[10.96.0.0/16]",
		"fd00::/112, 10.96.0.0/16": "[fd00::/112 10.96.0.0/16]",
		"10.96.0.0/29":             "[10.96.0.0/29]",
		"10.96.0.0/30": "--service-cluster-ip-range: 10.96.0.0/30 is too small: it must have " +
			"at least 8 addresses",
		"":                                   `--service-cluster-ip-range: "" is not a CIDR such as 10.96.0.0/16`,
		"10.96.0.0/16,":                      `--service-cluster-ip-range: "" is not a CIDR such as 10.96.0.0/16`,
		"10.96.0.0/16,10.97.0.0/16":          `--service-cluster-ip-range: "10.96.0.0/16,10.97.0.0/16"` + one,
		"10.96.0.0/16,fd00::/112,fd01::/112": `--service-cluster-ip-range: "10.96.0.0/16,fd00::/112,fd01::/112"` + one,
	} {
		ranges, err := serviceRanges(text)
		got := fmt.Sprint(ranges)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
