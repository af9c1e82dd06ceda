package hostport

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"keelson.dev/kit/keptport"
)

func TestForwards(t *testing.T) {
	pod := netip.MustParseAddr("10.244.1.5")
	target := netip.MustParseAddrPort("10.244.1.5:80")
	kept := []keptport.Port{{Keeper: "apiserver", Protocol: keptport.TCP, First: 6443, Last: 6443},
		{Keeper: "dns", Protocol: keptport.UDP, Address: netip.MustParseAddr("127.0.0.53"), First: 53, Last: 53}}
	for _, r := range []struct {
		name    string
		mapping Mapping
		want    []Forward
		wrong   string
	}{
		{"tcp unless said otherwise", Mapping{HostPort: 8080, ContainerPort: 80},
			[]Forward{{Port: 8080, Protocol: 6, Target: target}}, ""},
		{"udp", Mapping{HostPort: 8080, ContainerPort: 80, Protocol: "UDP"},
			[]Forward{{Port: 8080, Protocol: 17, Target: target}}, ""},
		{"sctp", Mapping{HostPort: 8080, ContainerPort: 80, Protocol: "sctp"},
			[]Forward{{Port: 8080, Protocol: 132, Target: target}}, ""},
		{"one address", Mapping{HostPort: 1, ContainerPort: 80, HostIP: "192.0.2.1"},
			[]Forward{{Host: netip.MustParseAddr("192.0.2.1"), Port: 1, Protocol: 6, Target: target}}, ""},
		{"all addresses", Mapping{HostPort: 65535, ContainerPort: 80, HostIP: "0.0.0.0"},
			[]Forward{{Port: 65535, Protocol: 6, Target: target}}, ""},
		{"IPv6 has no Pod address", Mapping{HostPort: 8080, ContainerPort: 80, HostIP: "::"}, nil, ""},
		{"IPv6 that stands for an IPv4 address", Mapping{HostPort: 8080, ContainerPort: 80, HostIP: "::ffff:192.0.2.1"},
			[]Forward{{Host: netip.MustParseAddr("192.0.2.1"), Port: 8080, Protocol: 6, Target: target}}, ""},
		{"IPv6 that stands for all IPv4 addresses", Mapping{HostPort: 8080, ContainerPort: 80,
			HostIP: "::ffff:0.0.0.0"},
			[]Forward{{Port: 8080, Protocol: 6, Target: target}}, ""},
		{"one IPv6 address", Mapping{HostPort: 8080, ContainerPort: 80, HostIP: "2001:db8::1"}, nil, ""},
		{"the first and the last port", Mapping{HostPort: 1, ContainerPort: 65535},
			[]Forward{{Port: 1, Protocol: 6, Target: netip.MustParseAddrPort("10.244.1.5:65535")}}, ""},
		{"the last and the first port", Mapping{HostPort: 65535, ContainerPort: 1},
			[]Forward{{Port: 65535, Protocol: 6, Target: netip.MustParseAddrPort("10.244.1.5:1")}}, ""},
		{"Pod's port below all", Mapping{HostPort: 80, ContainerPort: -1}, nil, "portMappings[0].containerPort: -1"},
		{"no port of the machine", Mapping{ContainerPort: 80}, nil, ""},
		{"port above all", Mapping{HostPort: 65536, ContainerPort: 80}, nil, "portMappings[0].hostPort: 65536"},
		{"port below all", Mapping{HostPort: -1, ContainerPort: 80}, nil, "portMappings[0].hostPort: -1"},
		{"no port of the Pod", Mapping{HostPort: 80}, nil, "portMappings[0].containerPort: 0"},
		{"Pod's port above all", Mapping{HostPort: 80, ContainerPort: 65536}, nil,
			"portMappings[0].containerPort: 65536"},
		{"unknown protocol", Mapping{HostPort: 80, ContainerPort: 80, Protocol: "icmp"}, nil,
			`portMappings[0].protocol: "icmp" must be tcp, udp or sctp`},
		{"a port that the machine keeps", Mapping{HostPort: 6443, ContainerPort: 80}, nil,
			"portMappings[0].hostPort: 6443/TCP of the machine is kept for apiserver"},
		{"the same of another protocol", Mapping{HostPort: 6443, ContainerPort: 80, Protocol: "udp"},
			[]Forward{{Port: 6443, Protocol: 17, Target: target}}, ""},
		{"a port that is kept at an address", Mapping{HostPort: 53, ContainerPort: 80, Protocol: "udp",
			HostIP: "127.0.0.53"}, nil, "portMappings[0].hostPort: 53/UDP of the machine is kept for dns"},
		{"the same at the others", Mapping{HostPort: 53, ContainerPort: 80, Protocol: "udp"},
			[]Forward{{Port: 53, Protocol: 17, Target: target}}, ""},
		{"no address", Mapping{HostPort: 80, ContainerPort: 80, HostIP: "here"}, nil, `portMappings[0].hostIP: "here"`},
	} {
		got, err := Forwards([]Mapping{r.mapping}, pod, kept)
		if r.wrong != "" && (err == nil || !strings.Contains(err.Error(), r.wrong)) || r.wrong == "" && err != nil {
			t.Errorf("%s: error %v, want %q", r.name, err, r.wrong)
		}
		if !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %+v, want %+v", r.name, got, r.want)
		}
	}
}

// What needs nothing is passed over, what comes behind it is not, and an error names its place.
func TestForwardsOfSeveral(t *testing.T) {
	pod := netip.MustParseAddr("10.244.1.5")
	mappings := []Mapping{{ContainerPort: 80}, {HostPort: 81, ContainerPort: 80, HostIP: "::1"},
		{HostPort: 82, ContainerPort: 80}, {HostPort: 83, ContainerPort: 80}}
	got, err := Forwards(mappings, pod, nil)
	if err != nil || len(got) != 2 || got[0].Port != 82 || got[1].Port != 83 {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = Forwards(append(mappings, Mapping{HostPort: 84}), pod, nil)
	if want := "runtimeConfig.portMappings[4].containerPort: 0 must be from 1 to 65535"; got != nil || err == nil ||
		err.Error() != want {
		t.Errorf("got %+v, %v; want %q", got, err, want)
	}
}

// The guarded link is the Pod's own, even if the result has other links.
func TestLink(t *testing.T) {
	const whole = `{"cniVersion":"1.0.0","name":"n","type":"keelson-hostport","table":"t","guard":true,
		"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"keel0","mac":"02:00:00:00:00:01"},
			{"name":"veth1","mac":"02:00:00:00:00:02"},{"name":"eth0","mac":"02:00:00:00:00:03","sandbox":"/n"},
			{"name":"eth1","mac":"02:00:00:00:00:04","sandbox":"/n"}],
			"ips":[{"address":"fd00::5/64","interface":2},{"address":"10.244.1.5/24","interface":2}]}}`
	for name, row := range map[string]struct{ old, now, want string }{
		"all that is needed":  {"", "", "{veth1 [2 0 0 0 0 3] [fd00::5 10.244.1.5]}"},
		"no end in the Pod":   {`"eth0"`, `"eth7"`, ""},
		"no hardware address": {`"02:00:00:00:00:03"`, `""`, ""},
		"no end outside":      {`"veth1"`, `""`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse([]byte(strings.Replace(whole, row.old, row.now, 1)))
			if err != nil {
				t.Fatal(err)
			}
			link, err := c.link("eth0")
			if row.want == "" {
				if err == nil ||
					!strings.HasPrefix(err.Error(), "prevResult: it must name both ends of the link eth0") {
					t.Errorf("%+v, %v", link, err)
				}
				return
			}
			if got := fmt.Sprint(link); err != nil || got != row.want {
				t.Errorf("%s, %v; want %s", got, err, row.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	const whole = `{"cniVersion":"1.0.0","name":"n","type":"keelson-hostport","table":"t",
		"kept":[{"keeper":"apiserver","protocol":"TCP","first":6443,"last":6443}],
		"runtimeConfig":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":""}]},
		"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/n"}],
			"ips":[{"address":"fd00::5/64"},{"address":"10.244.1.5/24","gateway":"10.244.1.1","interface":0}]}}`
	c, err := parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	forwards, pod, err := c.forwards()
	if err != nil || len(forwards) != 1 || forwards[0].Target.String() != "10.244.1.5:80" ||
		pod.String() != "10.244.1.5/24" {
		t.Errorf("forwards %+v of %s, %v", forwards, pod, err)
	}
	taken, err := parse([]byte(strings.Replace(whole, `"hostPort":8080`, `"hostPort":6443`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := taken.forwards(); err == nil || !strings.Contains(err.Error(), "is kept for apiserver") {
		t.Errorf("a port that the machine keeps: %v", err)
	}
	if _, err := parse([]byte(strings.Replace(whole, `"table":"t",`, "", 1))); err == nil ||
		!strings.Contains(err.Error(), "table") {
		t.Errorf("without a table: %v", err)
	}
}
