package plan

import (
	"slices"
	"strings"
	"testing"
)

// A machine of a control plane shares its store with certificates of an authority that signs nothing else, and its
// Pods cannot use the port.
func TestStoreFlags(t *testing.T) {
	in := machineInput()
	in.Ports[StorePort] = 2380
	apiserver := func(in ProcessInput) []string { return DecideProcesses(in)[0][0].Args }
	has := func(args []string, start string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, start) })
	}
	args, at := apiserver(in), in.Advertise.String()+":2380"
	for _, want := range []string{"--etcd-peer-address=" + at,
		"--etcd-peer-ca-file=" + in.Layout.PKI("store-ca.crt"),
		"--etcd-peer-cert-file=" + in.Layout.PKI("store-peer.crt")} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not among %v", want, args)
		}
	}
	if has(args, "--etcd-join") || has(args, "--encryption") {
		t.Errorf("a first machine runs with %v", args)
	}
	if kept := in.keptPorts(0); !strings.Contains(kept, at+"/tcp=store") {
		t.Errorf("kept are %s", kept)
	}
	in.StorePeers, in.Encrypted = []string{"https://192.0.2.1:2380", "https://192.0.2.2:2380"}, true
	for _, want := range []string{"--etcd-join=https://192.0.2.1:2380,https://192.0.2.2:2380",
		"--encryption-provider-config=" + in.Layout.PKI("encryption.yaml")} {
		if args := apiserver(in); !slices.Contains(args, want) {
			t.Errorf("%s is not among %v", want, args)
		}
	}
	delete(in.Ports, StorePort)
	if args := apiserver(in); has(args, "--etcd-peer") || has(args, "--etcd-join") || in.StoreURL() != "" {
		t.Errorf("without a port it runs with %v, %s", args, in.StoreURL())
	}
}

func TestStorePortIsNeeded(t *testing.T) {
	for _, row := range []struct{ expected, worker, want bool }{
		{true, false, true}, {false, false, false}, {true, true, false},
	} {
		needs := PortNeeds(NeedsInput{Layout: Layout{Dir: "/d"}, Nodes: []string{"n"}, Expected: row.expected,
			Worker: row.worker})
		if got := slices.ContainsFunc(needs, func(n PortNeed) bool { return n.Name == StorePort }); got != row.want {
			t.Errorf("%+v: %t", row, got)
		}
	}
}

func TestStoreCertificate(t *testing.T) {
	of := func(store bool) []Certificate {
		in := PKIInput{Service: prefix("10.96.0.0/16"), Nodes: []string{"vm"}, Store: store}
		return slices.DeleteFunc(DecidePKI(in), func(c Certificate) bool { return !c.Store })
	}
	if got := of(false); len(got) > 0 {
		t.Errorf("a mesh that shares nothing has %v", got)
	}
	if got := of(true); len(got) != 1 || got[0].File != "store-peer" || !got[0].Serves() || got[0].HasKubeconfig() {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"store-ca", "store-peer"} {
		if !IsCertificate(name) {
			t.Errorf("a node may be called %s", name)
		}
	}
}

func TestForeignFlags(t *testing.T) {
	own := []string{"--secure-port=6443", "--enable-bootstrap-token-auth"}
	for name, row := range map[string]struct {
		running    []string
		encryption string
		flags      []string
	}{
		"as keel starts it": {own, "", nil},
		"nothing known":     {nil, "", nil},
		"encrypted": {append([]string{"--encryption-provider-config=/etc/e.yaml"}, own...), "/etc/e.yaml",
			nil},
		"encrypted, in two":  {[]string{"--encryption-provider-config", "/etc/e.yaml"}, "/etc/e.yaml", nil},
		"encrypted, cut off": {[]string{"--encryption-provider-config"}, "", []string{"--encryption-provider-config"}},
		"another port, a plugin": {[]string{"--secure-port=443", "--enable-admission-plugins=X"}, "",
			[]string{"--secure-port=443", "--enable-admission-plugins=X"}},
	} {
		got := ForeignFlags(own, row.running)
		if got.Encryption != row.encryption || !slices.Equal(got.Flags, row.flags) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
