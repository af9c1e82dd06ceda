package fieldmask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// headSize is how many bytes encode the length of an event.
	headSize = 4
	// largest is the longest event that is looked into: clients take no longer ones.
	largest = 16 << 20
	// roomy is how much memory for events a quiet watch may keep.
	roomy = 64 << 10
)

// Over returns a copy of the connection whose watches bring only what the mask keeps. Lists come whole.
func (m *Mask) Over(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next: next, mask: m} })
	return config
}

type transport struct {
	next http.RoundTripper
	mask *Mask
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK && isWatch(response.Header.Get("Content-Type")) {
		response.Body = &stream{body: response.Body, mask: t.mask}
	}
	return response, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

var _ utilnet.RoundTripperWrapper = transport{}

// isWatch reports whether a body of this type is events in protobuf.
func isWatch(contentType string) bool {
	return strings.HasPrefix(contentType, runtime.ContentTypeProtobuf) && strings.Contains(contentType, ";stream=watch")
}

// stream reads events, each behind its length, and hands out what is kept of them.
type stream struct {
	body io.ReadCloser
	mask *Mask

	buffer []byte
	// pending is what was read and not handed out; whole counts the bytes to come of an event that is not looked into.
	pending []byte
	whole   int64
	err     error
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.pending) == 0 && s.whole == 0 && s.err == nil {
		s.fill()
	}
	switch {
	case len(s.pending) > 0:
		n := copy(p, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	case s.whole > 0:
		n, err := s.body.Read(p[:min(int64(len(p)), s.whole)])
		s.whole -= int64(n)
		return n, err
	}
	return 0, s.err
}

// fill reads one event. What comes before an error is handed out as it is.
func (s *stream) fill() {
	if cap(s.buffer) > roomy {
		s.buffer = nil
	}
	s.buffer = slices.Grow(s.buffer[:0], headSize)[:headSize]
	n, err := io.ReadFull(s.body, s.buffer)
	if err != nil {
		s.pending, s.err = s.buffer[:n], plainEnd(err)
		return
	}
	size := binary.BigEndian.Uint32(s.buffer)
	if size > largest {
		s.pending, s.whole = s.buffer, int64(size)
		return
	}
	s.buffer = slices.Grow(s.buffer, int(size))[:headSize+int(size)]
	if n, err := io.ReadFull(s.body, s.buffer[headSize:]); err != nil {
		s.pending, s.err = s.buffer[:headSize+n], plainEnd(err)
		return
	}
	kept, err := s.mask.Event(s.buffer[headSize:])
	if err != nil {
		s.err = fmt.Errorf("masking fields: %w", err)
		return
	}
	binary.BigEndian.PutUint32(s.buffer, uint32(len(kept)))
	s.pending = s.buffer[:headSize+len(kept)]
}

// plainEnd is the error of a body that ends, wherever it does.
func plainEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// Close implements io.Closer.
func (s *stream) Close() error { return s.body.Close() }
