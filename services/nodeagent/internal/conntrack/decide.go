package conntrack

import (
	"strconv"
	"time"
)

// Settings say how many connections the kernel follows, and for how long. What is zero stays as it is.
type Settings struct {
	// MaxPerCore is how many connections there may be for each core, Min how many on however few. A table that is
	// larger already stays.
	MaxPerCore, Min int
	// TCPEstablished is how long an idle connection is followed, TCPCloseWait one that one side has closed.
	TCPEstablished, TCPCloseWait time.Duration
	// UDP is how long a flow is followed of which one direction was seen, UDPStream one of both.
	UDP, UDPStream time.Duration
	// TCPBeLiberal lets packets through that are out of their connection's window.
	TCPBeLiberal bool
}

// Default are kube-proxy's: what is written for it finds the same times here (reference of kube-proxy,
// --conntrack-*).
func Default() Settings {
	return Settings{MaxPerCore: 32768, Min: 131072, TCPEstablished: 24 * time.Hour, TCPCloseWait: time.Hour}
}

// write is a value to be written to a file of the kernel. Shared says that the setting is of the whole machine: in a
// network namespace of its own an agent may not write it.
type write struct {
	path, value string
	shared      bool
}

// Files of the kernel.
const (
	folder   = "/proc/sys/net/netfilter/nf_conntrack_"
	maxFile  = folder + "max"
	hashFile = "/sys/module/nf_conntrack/parameters/hashsize"
	// perBucket is how many connections share a bucket of a full table.
	perBucket = 4
)

// decide returns what is to be written, given the cores of the machine and how large the table and its index are; 0
// where that is unknown.
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
