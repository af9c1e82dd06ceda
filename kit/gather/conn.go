package gather

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// conn is a connection from which little is read at a time only where little comes. One goroutine reads it.
type conn struct {
	net.Conn

	from  socket
	pause time.Duration
	// last is the time of the last read, gap the time between it and the read before, size the bytes that it got.
	last time.Time
	gap  time.Duration
	size int
	// gathers says that the socket does not wake the process up for a few bytes.
	gathers bool
	buffer  []byte
	// held are the bytes that were read and not handed out yet.
	held []byte
}

// socket is the source that a connection is read from.
type socket interface {
	// Read waits until there is something.
	Read(p []byte) (int, error)
	// ReadNow returns the available bytes, or errNothing.
	ReadNow(p []byte) (int, error)
	// WakeAt sets how many bytes wake the process up. It is a hint.
	WakeAt(bytes int)
}

var errNothing = errors.New("there is nothing to read")

// newConn returns c unchanged if it is not a TCP connection.
func newConn(c net.Conn, pause time.Duration) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	return &conn{Conn: c, from: &tcpSocket{Reader: tcp, raw: raw}, pause: pause, gap: 2 * pause,
		buffer: make([]byte, room)}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.held) == 0 {
		n, err := c.fill()
		if err != nil {
			return 0, err
		}
		c.held = c.buffer[:n]
	}
	n := copy(p, c.held)
	c.held = c.held[n:]
	return n, nil
}

// fill reads the available data: after a pause if data has come lately, else as soon as there is some.
func (c *conn) fill() (n int, err error) {
	defer func() {
		now := time.Now()
		c.size, c.gap, c.last = n, now.Sub(c.last), now
	}()
	if paced(c.size, c.gap, c.pause) {
		c.gather(true)
		time.Sleep(c.pause - time.Since(c.last))
		if n, err = c.from.ReadNow(c.buffer); !errors.Is(err, errNothing) {
			return n, err
		}
	}
	c.gather(false)
	return c.from.Read(c.buffer)
}

func (c *conn) gather(on bool) {
	if c.gathers == on {
		return
	}
	c.gathers = on
	if on {
		c.from.WakeAt(much)
	} else {
		c.from.WakeAt(1)
	}
}

type tcpSocket struct {
	io.Reader

	raw syscall.RawConn
}

// ReadNow implements socket.
func (t *tcpSocket) ReadNow(p []byte) (n int, err error) {
	broken := t.raw.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), p); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case broken != nil:
		return 0, broken
	case errors.Is(err, unix.EAGAIN):
		return 0, errNothing
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// WakeAt implements socket.
func (t *tcpSocket) WakeAt(bytes int) {
	_ = t.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	})
}
