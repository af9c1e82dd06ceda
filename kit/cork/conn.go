package cork

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"keelson.dev/kit/contained"
)

const (
	// limit is how many bytes wait at most: a Write that finds no room waits until they are being sent.
	limit = 32 << 10
	// linger is how long what waits is still sent after Close, as a kernel does for a socket of its own.
	linger = 30 * time.Second
)

// conn takes what is written and sends it soon after, in order. As that of a socket, its Write says that bytes were
// taken, not that they have arrived: the next Write returns their errors, and so does Read.
type conn struct {
	net.Conn

	mu sync.Mutex
	// changed signals writers that there is room, or that there will be none.
	changed sync.Cond
	// waiting is what was taken and is not being sent.
	waiting []byte
	// sending says that a goroutine sends.
	sending bool
	closed  bool
	// failure is why nothing is sent any more. A deadline that has passed may be replaced, which terms counts.
	failure error
	terms   int
}

func newConn(c net.Conn) *conn {
	taken := &conn{Conn: c}
	taken.changed.L = &taken.mu
	return taken
}

// buffers are for what waits: a connection on which nothing does holds none.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.failure == nil && !c.closed && len(c.waiting) > 0 && len(c.waiting)+len(p) > limit {
		c.changed.Wait()
	}
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.failure != nil:
		return 0, c.failure
	case len(p) == 0:
		return 0, nil
	}
	if c.waiting == nil {
		c.waiting = (*buffers.Get().(*[]byte))[:0]
	}
	c.waiting = append(c.waiting, p...)
	c.start()
	return len(p), nil
}

// start lets what waits be sent. The lock is held.
func (c *conn) start() {
	if !c.sending && c.failure == nil && len(c.waiting) > 0 {
		c.sending = true
		contained.Go("sending what waits", c.send, c.broken)
	}
}

// send sends until nothing waits. Goroutines that are ready run first: they may have more to write.
func (c *conn) send() {
	runtime.Gosched()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.failure == nil && len(c.waiting) > 0 {
		batch, term := c.waiting, c.terms
		c.waiting = nil
		c.changed.Broadcast()
		n, err := c.unlocked(batch)
		switch {
		case err == nil && cap(batch) <= 2*limit:
			buffers.Put(&batch)
		case err != nil:
			c.waiting = append(batch[n:], c.waiting...)
			if !errors.Is(err, os.ErrDeadlineExceeded) || term == c.terms {
				c.failure = err
			}
		}
	}
	c.sending = false
	c.changed.Broadcast()
	if c.closed {
		_ = c.Conn.Close()
	}
}

// unlocked writes without the lock, which is held before and after.
func (c *conn) unlocked(p []byte) (int, error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.Conn.Write(p)
}

// broken ends the connection: what became of the bytes that were being sent is not known.
func (c *conn) broken(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure, c.sending = err, false
	c.changed.Broadcast()
	_ = c.Conn.Close()
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && c.isClosed() {
		err = net.ErrClosed
	}
	return n, err
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close implements net.Conn. It ends reads and writes at once; what was taken is still sent.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.changed.Broadcast()
	// TLS closes with a deadline that is over already, so that no further write succeeds.
	_ = c.allow(time.Now().Add(linger))
	if !c.sending {
		return c.Conn.Close()
	}
	return c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// allow gives writes until t, also those that have run out of time. The lock is held.
func (c *conn) allow(t time.Time) error {
	err := c.Conn.SetWriteDeadline(t)
	c.terms++
	if err == nil && errors.Is(c.failure, os.ErrDeadlineExceeded) {
		c.failure = nil
		c.start()
	}
	return err
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.allow(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
