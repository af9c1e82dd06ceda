package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestEtcdCheck(t *testing.T) {
	for name, row := range map[string]struct {
		etcd Etcd
		want string
	}{
		"one server":       {Etcd{Servers: []string{"http://127.0.0.1:2379"}}, ""},
		"names and IPv6":   {Etcd{Servers: []string{"https://etcd-1.example.com", "https://[2001:db8::1]:2379"}}, ""},
		"TLS files":        {Etcd{[]string{"https://e:2379"}, "/e/ca.crt", "/e/c.crt", "/e/c.key"}, ""},
		"no server":        {Etcd{}, "--etcd-servers is missing"},
		"no scheme":        {Etcd{Servers: []string{"127.0.0.1:2379"}}, `--etcd-servers: "127.0.0.1:2379" must be the client`},
		"another scheme":   {Etcd{Servers: []string{"unix:///x"}}, `--etcd-servers: "unix:///x" must be`},
		"a path":           {Etcd{Servers: []string{"https://e:2379/v3"}}, "must be the client URL"},
		"a space":          {Etcd{Servers: []string{"https://e:2379 --x"}}, "must be the client URL"},
		"key alone":        {Etcd{[]string{"https://e"}, "", "", "/k"}, "--etcd-certfile: needs --etcd-keyfile"},
		"certificate":      {Etcd{[]string{"https://e"}, "", "/c", ""}, "--etcd-certfile: needs --etcd-keyfile"},
		"a file's %":       {Etcd{[]string{"https://e"}, "/%i", "", ""}, `--etcd-cafile: "/%i" must be an absolute path`},
		"a relative file":  {Etcd{[]string{"https://e"}, "", "c", "/k"}, `--etcd-certfile: "c" must be an absolute path`},
		"the second of it": {Etcd{Servers: []string{"https://e:2379", ""}}, `--etcd-servers: "" must be`},
	} {
		err := row.etcd.Check()
		if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// A mesh whose store is an etcd cluster shares no embedded one, and no port is kept for it.
func TestEtcdFlags(t *testing.T) {
	in := machineInput()
	in.Ports[StorePort] = 2380
	in.StorePeers = []string{"https://192.0.2.1:2380"}
	in.Etcd = &Etcd{[]string{"https://a:2379", "https://b:2379"}, "/e/ca.crt", "/e/c.crt", "/e/c.key"}
	args := DecideProcesses(in)[0][0].Args
	for _, want := range []string{"--etcd-servers=https://a:2379,https://b:2379", "--etcd-cafile=/e/ca.crt",
		"--etcd-certfile=/e/c.crt", "--etcd-keyfile=/e/c.key"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not among %v", want, args)
		}
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--etcd-peer") || strings.HasPrefix(arg, "--etcd-join") {
			t.Errorf("%s is set", arg)
		}
	}
	if kept := in.keptPorts(0); strings.Contains(kept, "=store") || in.StoreURL() != "" {
		t.Errorf("kept are %s, the store is at %s", kept, in.StoreURL())
	}
	in.Etcd = &Etcd{Servers: []string{"http://a:2379"}}
	if flags := in.Etcd.Flags(); !slices.Equal(flags, []string{"--etcd-servers=http://a:2379"}) {
		t.Errorf("without TLS: %v", flags)
	}
}
