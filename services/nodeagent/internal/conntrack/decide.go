package conntrack

import (
	"strconv"
	"time"
)

// Settings are how many connections the kernel tracks, and for how long. Zero leaves a setting unchanged.
type Settings struct {
	// MaxPerCore is the maximum number of connections per core, Min the minimum size of the table. A table that is
	// larger already is not changed.
	MaxPerCore, Min int
	// TCPEstablished is how long an idle connection is tracked, TCPCloseWait one that one side has closed.
	TCPEstablished, TCPCloseWait time.Duration
	// UDP is how long a flow seen in one direction is tracked, UDPStream one seen in both.
	UDP, UDPStream time.Duration
	// TCPBeLiberal accepts packets outside their connection's window.
	TCPBeLiberal bool
}

// Default returns kube-proxy's defaults: programs written for it find the same times here (reference of kube-proxy,
// --conntrack-*).
func Default() Settings {
	return Settings{MaxPerCore: 32768, Min: 131072, TCPEstablished: 24 * time.Hour, TCPCloseWait: time.Hour}
}

// write is a value for a file of the kernel. shared means that the setting is of the whole machine: in another
// network namespace an agent may not write it.
type write struct {
	path, value string
	shared      bool
}

// The files of the kernel.
const (
	folder   = "/proc/sys/net/netfilter/nf_conntrack_"
	maxFile  = folder + "max"
	hashFile = "/sys/module/nf_conntrack/parameters/hashsize"
	// perBucket is how many connections share a bucket of a full table.
	perBucket = 4
)

// decide returns what is to be written, for the machine's cores and the current sizes of the table and its index; 0
// if these are unknown.
func decide(s Settings, cores, table, buckets int) []write {
	var out []write
	if s.MaxPerCore > 0 {
		want := max(s.Min, s.MaxPerCore*cores)
		if want > table {
			out = append(out, write{maxFile, strconv.Itoa(want), true})
		}
		if index := max(want, table) / perBucket; index > buckets {
			out = append(out, write{hashFile, strconv.Itoa(index), true})
		}
	}
	for _, t := range []struct {
		name string
		time time.Duration
	}{
		{"tcp_timeout_established", s.TCPEstablished}, {"tcp_timeout_close_wait", s.TCPCloseWait},
		{"udp_timeout", s.UDP}, {"udp_timeout_stream", s.UDPStream},
	} {
		if t.time > 0 {
			out = append(out, write{path: folder + t.name, value: strconv.Itoa(int(t.time.Seconds()))})
		}
	}
	if s.TCPBeLiberal {
		out = append(out, write{path: folder + "tcp_be_liberal", value: "1"})
	}
	return out
}
