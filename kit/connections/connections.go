// Package connections bounds how many connections a server keeps. Each takes a file descriptor and memory, even a
// silent one; without a bound, a client that reaches the port can take all of them and lock out the others.
//
// A connection counts for its network address until the server knows the client, and then for the client. One address
// or client has a bounded number of connections; with more it loses its oldest. If all together have too many, the
// server closes the oldest connection of the one with the most: a new client gets in however many others have.
package connections

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
)

// Limits are how many connections there may be.
type Limits struct {
	// Unknown is how many connections of unknown clients there may be, Known how many others.
	Unknown, Known int
	// PerAddress is how many of the first one network address may have, PerClient how many of the others one client;
	// zero is a quarter of all.
	PerAddress, PerClient int
}

// Within are the limits for a process that may open so many files: of those an eighth for unknown clients, and no more
// than 1,024, and half for the others, and no more than 16,384, of one client 1,024. A connection takes up to 1 MiB of
// memory, while the header of a request comes on it.
func Within(files uint64) Limits {
	const mostUnknown, mostKnown, mostOfOne = 1024, 16_384, 1024
	n := int(min(files, 8*mostKnown))
	l := Limits{Unknown: max(min(n/8, mostUnknown), 1), Known: max(min(n/2, mostKnown), 1)}
	l.PerClient = max(min(l.Known/part, mostOfOne), 1)
	return l
}

// OfProcess are the limits by what this process may open.
func OfProcess() Limits {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return Within(1024) // what every system lets a process open
	}
	return Within(files.Cur)
}

// Listener keeps no more connections of the listener behind it than its limits allow. Make it with Bound.
type Listener struct {
	net.Listener

	mu             sync.Mutex // guards what follows
	open           map[ends]*conn
	unknown, known crowd
}

// ends are the two addresses of a connection.
type ends struct{ local, remote netip.AddrPort }

// Bound returns a listener with the limits.
func Bound(l net.Listener, limits Limits) *Listener {
	return &Listener{Listener: l, open: map[ends]*conn{}, unknown: newCrowd(limits.Unknown, limits.PerAddress),
		known: newCrowd(limits.Known, limits.PerClient)}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	at := ends{addressOf(accepted.LocalAddr()), addressOf(accepted.RemoteAddr())}
	c := &conn{Conn: accepted, of: l, at: at, owner: at.remote.Addr().String()}
	l.begin(c).end()
	return c, nil
}

// begin counts a new connection, and returns one that is to be closed for it.
func (l *Listener) begin(c *conn) (tooMany *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c.at] = c
	l.unknown.add(c)
	return l.leave(l.unknown.surplus(c))
}

// Known says that a request of this client came on the connection.
func (l *Listener) Known(r *http.Request, client string) {
	if at, ok := endsOf(r); ok {
		l.know(at, client).end()
	}
}

// know counts a connection as the client's, and returns one that is to be closed for it.
func (l *Listener) know(at ends, client string) (tooMany *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[at]
	if c == nil || c.in == &l.known {
		return nil
	}
	l.unknown.remove(c)
	c.owner = client
	l.known.add(c)
	return l.leave(l.known.surplus(c))
}

// leave counts a connection no more. The lock is held.
func (l *Listener) leave(c *conn) *conn {
	if c == nil || c.in == nil {
		return nil
	}
	c.in.remove(c)
	if l.open[c.at] == c { // its addresses may be another's by now
		delete(l.open, c.at)
	}
	return c
}

func endsOf(r *http.Request) (ends, bool) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return ends{addressOf(local), unmapped(from)}, err == nil && local != nil
}

// addressOf is the address of a TCP connection; of another it is none.
func addressOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	return unmapped(tcp.AddrPort())
}

func unmapped(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// conn is a connection that is counted until it is closed. The listener's lock guards what it has of its own.
type conn struct {
	net.Conn
	of *Listener
	at ends
	// owner is whose it is.
	owner string
	// in is where it is counted, number how many came there before it, place where it stands among the owner's.
	in     *crowd
	number uint64
	place  *list.Element
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.leave(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// end closes the connection, if there is one: its server hears that reading failed.
func (c *conn) end() {
	if c != nil {
		_ = c.Conn.Close()
	}
}
