package processes

import (
	"slices"
	"testing"
)

func TestKnown(t *testing.T) {
	const help = `Start the mesh
Flags:
      --dns string        what answers for names (default "coredns")
      --dns-domain        see --domain=x
  -h, --help              help`
	for _, r := range []struct{ args, want []string }{
		{[]string{"--dns=none", "--nodes=1", "--help"}, []string{"--dns=none", "--help"}},
		{[]string{"--dn=none", "--domain=x", "--dns-domain=x"}, []string{"--dns-domain=x"}},
		{nil, nil},
	} {
		if got := known(help, r.args); !slices.Equal(got, r.want) {
			t.Errorf("of %q %q are known, want %q", r.args, got, r.want)
		}
	}
}
