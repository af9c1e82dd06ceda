package conntrack

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// The writes for each setting; a table is never made smaller.
func TestDecide(t *testing.T) {
	const times = "tcp_timeout_established=86400 tcp_timeout_close_wait=3600"
	only := func(edit func(*Settings)) Settings {
		s := Settings{}
		edit(&s)
		return s
	}
	for name, row := range map[string]struct {
		settings              Settings
		cores, table, buckets int
		want                  string
	}{
		"few cores":            {Default(), 2, 65536, 16384, "max=131072! hashsize=32768! " + times},
		"four cores":           {Default(), 4, 65536, 16384, "max=131072! hashsize=32768! " + times},
		"many cores":           {Default(), 8, 65536, 16384, "max=262144! hashsize=65536! " + times},
		"unknown table":        {Default(), 1, 0, 0, "max=131072! hashsize=32768! " + times},
		"just as large":        {Default(), 2, 131072, 32768, times},
		"larger":               {Default(), 2, 262144, 262144, times},
		"larger, little index": {Default(), 2, 262144, 65535, "hashsize=65536! " + times},
		"all as it is":         {Settings{}, 64, 0, 0, ""},
		"the table as it is":   {only(func(s *Settings) { s.Min = 5 }), 64, 0, 0, ""},
		"no least table":       {only(func(s *Settings) { s.MaxPerCore = 8 }), 2, 0, 0, "max=16! hashsize=4!"},
		"UDP": {only(func(s *Settings) { s.UDP, s.UDPStream = time.Second, time.Minute }), 1, 0, 0,
			"udp_timeout=1 udp_timeout_stream=60"},
		"liberal": {only(func(s *Settings) { s.TCPBeLiberal = true }), 1, 0, 0, "tcp_be_liberal=1"},
		"one of the times only": {only(func(s *Settings) { s.TCPCloseWait = 90 * time.Second }), 1, 0, 0,
			"tcp_timeout_close_wait=90"},
	} {
		var got []string
		for _, w := range decide(row.settings, row.cores, row.table, row.buckets) {
			text := strings.TrimPrefix(w.path, folder)
			text = text[strings.LastIndex(text, "/")+1:] + "=" + w.value
			if w.shared {
				text += "!"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%s: %q, want %q", name, text, row.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for flag, ok := range map[string]bool{
		"":                           true,
		"--conntrack-max-per-core=0": true, "--conntrack-max-per-core=-1": false,
		"--conntrack-min=0": true, "--conntrack-min=-1": false, "--conntrack-min=2147483648": false,
		"--conntrack-tcp-timeout-established=0s": true, "--conntrack-tcp-timeout-established=-1s": false,
		"--conntrack-tcp-timeout-close-wait=1s": true, "--conntrack-tcp-timeout-close-wait=999ms": false,
		"--conntrack-udp-timeout=1s": true, "--conntrack-udp-timeout=1ms": false,
		"--conntrack-udp-timeout-stream=2147483647s": true, "--conntrack-udp-timeout-stream=2147483648s": false,
	} {
		s, fs := Default(), pflag.NewFlagSet("test", pflag.ContinueOnError)
		s.AddFlags(fs)
		var args []string
		if flag != "" {
			args = append(args, flag)
		}
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(flag, "=")
		if err := s.Validate(); (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
