package supervise

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
)

func TestParse(t *testing.T) {
	const whole = `# Written by keel.

[Unit]
Description=Keelson nodeagent
After=network-online.target

[Service]
Type=exec
WorkingDirectory=/data
Environment=PATH=/p:/bin
Environment=KEEL_REVISION=0123
ExecStartPre=-/sbin/modprobe br_netfilter
ExecStart=/p/keelson-nodeagent \
  --node-name=a \
  --root-dir=/data/nodes/a
Restart=always
LimitNOFILE=1048576
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`
	got, err := parse(whole)
	want := program{modules: []string{"br_netfilter"}, oomScore: "-999", command: subprocess.Command{
		Path: "/p/keelson-nodeagent", Args: []string{"--node-name=a", "--root-dir=/data/nodes/a"}, Dir: "/data",
		Env: []string{"PATH=/p:/bin", "KEEL_REVISION=0123"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for change, want := range map[string]string{
		"ExecStart=/p/keelson-nodeagent|ExecStart=": "ExecStart must name one program",
		"Restart=always|ExecStart=/bin/true":        "ExecStart must name one program",
		"ExecStart=|Start=":                         "ExecStart is missing",
		"-/sbin/modprobe br_netfilter|/bin/rm -rf":  "ExecStartPre=/bin/rm -rf is not understood",
		"=-999|=low":         "OOMScoreAdjust",
		"[Service]|[Service": "reading a unit",
	} {
		from, to, _ := strings.Cut(change, "|")
		const flags = " \\\n  --node-name=a \\\n  --root-dir=/data/nodes/a"
		text := strings.ReplaceAll(strings.Replace(whole, from, to, 1), flags, "")
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", change, err)
		}
	}
}

// What keel writes for systemd is understood without it.
func TestUnitsOfAMeshAreUnderstood(t *testing.T) {
	for _, worker := range []string{"", "https://192.0.2.1:6443"} {
		in := plan.ProcessInput{Layout: plan.Layout{Dir: "/data"}, Programs: "/p", Nodes: []string{"a"}, Server: worker,
			Ports: map[string]int{}, BindAddress: netip.IPv4Unspecified(), Advertise: netip.IPv4Unspecified()}
		for _, unit := range slices.Concat(plan.DecideUnits(in, nil)...) {
			got, err := parse(unit.Content)
			if err != nil || got.command.Path != unit.Path || !reflect.DeepEqual(got.command.Args, unit.Process.Args) ||
				got.command.Dir != "/data" || len(got.command.Env) != 2 {
				t.Errorf("%s: %v, %+v", unit.Name, err, got)
			}
		}
	}
}
