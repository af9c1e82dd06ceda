package fieldcheck

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestAmounts(t *testing.T) {
	fieldtest.Check(t, Amounts(nil, at))
	fieldtest.Check(t, Amounts(corev1.ResourceList{"cpu": resource.MustParse("0"),
		"example.com/dongle": resource.MustParse("2")}, at))
	got := Amounts(corev1.ResourceList{"memory": resource.MustParse("-1"), "a b": resource.MustParse("1"),
		"cpu": resource.MustParse("-1m")}, at)
	fieldtest.Check(t, got, `at[a b]: Invalid value: "a b": name part must consist of`,
		`at[cpu]: Invalid value: "-1m": must be greater than or equal to 0`,
		`at[memory]: Invalid value: "-1": must be greater than or equal to 0`)
	if got[1].Field != "at[cpu]" {
		t.Errorf("the errors have no order: %v", got)
	}
}

// Traffic from elsewhere reaches no address of the machine's own or of its link.
func TestRoutableIP(t *testing.T) {
	const link = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
	const multicast = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
	const loopback = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
	for ip, want := range map[string]string{
		"10.0.0.1": "", "192.0.2.1": "", "2001:db8::1": "", "224.0.1.0": "", "169.253.255.255": "", "128.0.0.0": "",
		"0.0.0.0": "may not be unspecified (0.0.0.0 or ::)", "::": "may not be unspecified (0.0.0.0 or ::)",
		"127.0.0.1": loopback, "127.255.255.255": loopback, "::1": loopback,
		"169.254.0.0": link, "169.254.255.255": link, "fe80::1": link, "febf::1": link,
		"224.0.0.0": multicast, "224.0.0.255": multicast, "ff02::1": multicast,
		"": "must be a valid IP address", "10.0.0": "must be a valid IP address", "here": "must be a valid IP address",
		"::ffff:127.0.0.1": "must not be an IPv4-mapped IPv6 address",
	} {
		t.Run(ip, func(t *testing.T) {
			if want == "" {
				fieldtest.Check(t, RoutableIP(ip, at))
				return
			}
			fieldtest.Check(t, RoutableIP(ip, at), `at: Invalid value: "`+ip+`": `+want)
		})
	}
}

// No part of the replicas is more than all of them.
func TestReplicaCounts(t *testing.T) {
	for name, row := range map[string]struct {
		all, ready, available, updated int32
		want                           []string
	}{
		"nothing": {0, 0, 0, 0, nil}, "all": {3, 3, 3, 3, nil}, "some": {3, 2, 1, 3, nil},
		"more ready": {3, 4, 0, 0,
			[]string{"status.readyReplicas: Invalid value: 4: cannot be greater than status.replicas"}},
		"more available": {3, 3, 4, 0, []string{
			"status.availableReplicas: Invalid value: 4: cannot be greater than status.replicas",
			"status.availableReplicas: Invalid value: 4: cannot be greater than readyReplicas"}},
		"available and not ready": {3, 1, 2, 0, []string{
			"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}},
		"more updated": {3, 0, 0, 4, []string{
			"status.updatedReplicas: Invalid value: 4: cannot be greater than status.replicas"}},
		"less than none": {-1, -1, -1, -1, []string{
			"status.replicas: Invalid value: -1: must be greater than or equal to 0",
			"status.readyReplicas: Invalid value: -1: must be greater than or equal to 0",
			"status.availableReplicas: Invalid value: -1: must be greater than or equal to 0",
			"status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, ReplicaCounts(row.all, row.ready, row.available, field.NewPath("status"),
				Count{"updatedReplicas", row.updated}), row.want...)
		})
	}
}

// The count that goes into the names of revisions never goes down, nor away.
func TestCollisionCount(t *testing.T) {
	for name, row := range map[string]struct {
		count, old *int32
		want       []string
	}{
		"none": {nil, nil, nil}, "the first": {ptr.To[int32](1), nil, nil},
		"the same": {ptr.To[int32](2), ptr.To[int32](2), nil}, "one more": {ptr.To[int32](3), ptr.To[int32](2), nil},
		"none after 0": {nil, ptr.To[int32](0), nil},
		"one less": {ptr.To[int32](1), ptr.To[int32](2), []string{
			"status.collisionCount: Invalid value: 1: cannot be decremented"}},
		"away": {nil, ptr.To[int32](1), []string{"status.collisionCount: Invalid value: 0: cannot be decremented"}},
		"below nothing twice": {ptr.To[int32](-2), ptr.To[int32](-2), []string{
			"status.collisionCount: Invalid value: -2: must be greater than or equal to 0"}},
		"below nothing": {ptr.To[int32](-1), nil, []string{
			"status.collisionCount: Invalid value: -1: must be greater than or equal to 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			fieldtest.Check(t, CollisionCount(row.count, row.old, field.NewPath("status")), row.want...)
		})
	}
}

// The parameters of a driver are bounded: 512 parameters, and 256 KiB of keys and values together.
func TestParameters(t *testing.T) {
	many := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[strings.Repeat("k", i+1)] = ""
		}
		return out
	}
	for name, row := range map[string]struct {
		parameters map[string]string
		want       []string
	}{
		"none": {nil, nil}, "512": {many(512), nil}, "one without a value": {map[string]string{"a": ""}, nil},
		"513":     {many(513), []string{"at: Too many: 513: must have at most 512 items"}},
		"256 KiB": {map[string]string{"a": strings.Repeat("x", 262143)}, nil},
		"one byte more": {map[string]string{"a": strings.Repeat("x", 262144)},
			[]string{"at: Too long: may not be more than 262144 bytes"}},
		"keys count too": {map[string]string{"ab": strings.Repeat("x", 262143)}, []string{"at: Too long"}},
		"two together": {map[string]string{"a": strings.Repeat("x", 200000), "b": strings.Repeat("x", 62143)},
			[]string{"at: Too long"}},
		"a key that is none": {map[string]string{"": "v", "a": "w"}, []string{
			`at: Invalid value: "": field can not be empty.`}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Parameters(row.parameters, at), row.want...) })
	}
}

func TestDriverName(t *testing.T) {
	for name, want := range map[string]int{"csi.example.com": 0, "CSI.Example.com": 0, strings.Repeat("a", 63): 0,
		strings.Repeat("a", 64): 1, "": 1, "a_b": 1, "-": 1} {
		if got := DriverName(name); len(got) != want {
			t.Errorf("%q: %v, want %d", name, got, want)
		}
	}
}

func TestText(t *testing.T) {
	check := func(value string) []string {
		if value == "bad" {
			return []string{"is bad", "is worse"}
		}
		return nil
	}
	twice := []string{`at: Invalid value: "bad": is bad`, `at: Invalid value: "bad": is worse`}
	for name, row := range map[string]struct {
		got  field.ErrorList
		want []string
	}{
		"required":             {Required("good", at, check), nil},
		"required and bad":     {Required("bad", at, check), twice},
		"required and missing": {Required("", at, check), []string{"at: Required value"}},
		"optional":             {Optional("good", at, check), nil},
		"optional and bad":     {Optional("bad", at, check), twice},
		"optional and missing": {Optional("", at, func(string) []string { return []string{"is asked"} }), nil},
		"anything":             {Required(" ", at, NotEmpty), nil},
		"not anything":         {Required("", at, NotEmpty), []string{"at: Required value"}},
		"no sentence":          {Messages(1, at, nil), nil},
		"two":                  {Messages("bad", at, []string{"is bad", "is worse"}), twice},
		"as many bytes":        {AtMostBytes("äb", at, 3), nil},
		"more bytes":           {AtMostBytes("äbc", at, 3), []string{"at: Too long: may not be more than 3 bytes"}},
		"an object's name":     {Required("a.b-c", at, DNSSubdomain), nil},
		"no object's name": {Required("A", at, DNSSubdomain),
			[]string{`at: Invalid value: "A": a lowercase RFC 1123 subdomain`}},
		"a name too long":       {Required(strings.Repeat("a", 254), at, DNSSubdomain), []string{"at: Invalid value:"}},
		"the longest of a name": {Required(strings.Repeat("a", 253), at, DNSSubdomain), nil},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, row.got, row.want...) })
	}
	long := AtMostBytes(strings.Repeat("x", 1000), at, 10)
	if len(long) != 1 || len(long[0].Error()) > 100 {
		t.Errorf("the error repeats what is too long: %v", long)
	}
}
