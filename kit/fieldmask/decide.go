package fieldmask

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/watch"
)

// The numbers of the fields that lie around a watched object: the event holds it, as raw bytes of an envelope.
const (
	typeOfEvent    = 1
	objectOfEvent  = 2
	rawOfObject    = 1
	typeOfEnvelope = 1
	rawOfEnvelope  = 2
	versionOfType  = 1
	kindOfType     = 2
	metaOfObject   = 1
	nameOfMeta     = 1
)

// magic is the prefix of an object in protobuf, by which it is told from JSON.
var magic = []byte("k8s\x00")

var errNotBytes = errors.New("is no message")

// Event returns a watch event without the fields that the mask drops, in the same memory, which it overwrites.
// Damage within a dropped field is dropped with it; elsewhere it is an error here or in decoding. A bookmark stays
// whole: it is small, and its metadata says how far the watch is.
func (m *Mask) Event(event []byte) ([]byte, error) {
	what, err := last(event, typeOfEvent)
	if err != nil {
		return nil, fmt.Errorf("damaged watch event: %w", err)
	}
	if string(what) == string(watch.Bookmark) {
		return event, nil
	}
	kept, err := replace(event[:0], event, objectOfEvent, func(kept, object []byte) ([]byte, error) {
		return replace(kept, object, rawOfObject, m.object)
	})
	if err != nil {
		return nil, fmt.Errorf("damaged watch event: %w", err)
	}
	return kept, nil
}

// Object returns an object in protobuf without the fields that the mask drops, in the same memory, which it
// overwrites. Other encodings stay as they are.
func (m *Mask) Object(raw []byte) ([]byte, error) {
	kept, err := m.object(raw[:0], raw)
	if err != nil {
		return nil, fmt.Errorf("damaged object: %w", err)
	}
	return kept, nil
}

// object appends the envelope of an object with what is kept of it.
func (m *Mask) object(kept, raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, magic) {
		return append(kept, raw...), nil
	}
	envelope := raw[len(magic):]
	rule, err := m.of(envelope)
	if err != nil {
		return nil, err
	}
	return replace(append(kept, magic...), envelope, rawOfEnvelope, rule.appendKept)
}

// of returns what holds for the object in the envelope.
func (m *Mask) of(envelope []byte) (*message, error) {
	meta, err := last(envelope, typeOfEnvelope)
	if err != nil {
		return nil, err
	}
	apiVersion, err := last(meta, versionOfType)
	if err != nil {
		return nil, err
	}
	name, err := last(meta, kindOfType)
	if err != nil {
		return nil, err
	}
	if rule := m.messages[kind{string(apiVersion), string(name)}]; rule != nil {
		return rule, nil
	}
	return plain, nil
}

// last returns the value of a field, of which the last counts.
func last(src []byte, number protowire.Number) (value []byte, err error) {
	for len(src) > 0 {
		found, wireType, size, err := next(src)
		if err != nil {
			return nil, err
		}
		if found == number {
			if wireType != protowire.BytesType {
				return nil, fmt.Errorf("field %d %w", number, errNotBytes)
			}
			value = contents(src[:size])
		}
		src = src[size:]
	}
	return value, nil
}

// appendKept appends the fields of a message that are kept. It writes no further than it has read, so that both may be
// the same memory.
func (m *message) appendKept(kept, src []byte) ([]byte, error) {
	for len(src) > 0 {
		number, wireType, size, err := next(src)
		if err != nil {
			return nil, err
		}
		if !m.drops(number) {
			if kept, err = appendField(kept, src[:size], wireType, m.fields[number]); err != nil {
				return nil, err
			}
		}
		src = src[size:]
	}
	return kept, nil
}

func (m *message) drops(number protowire.Number) bool {
	return m.only != nil && !m.only[number] || m.drop[number]
}

// appendField appends a field, and of a message in it what is kept of that; nil keeps all.
func appendField(kept, field []byte, wireType protowire.Type, inner *message) ([]byte, error) {
	if inner == nil || wireType != protowire.BytesType {
		return append(kept, field...), nil
	}
	return appendInner(kept, field, inner.appendKept)
}

// split appends the fields of a message that are kept to one of two messages of its kind: to shared those that many
// objects have alike, to own the others. own may be the memory of src, as in appendKept; shared may not.
func (m *message) split(own, shared, src []byte) (_, _ []byte, err error) {
	for len(src) > 0 {
		number, wireType, size, err := next(src)
		if err != nil {
			return nil, nil, err
		}
		field, inner := src[:size], m.fields[number]
		switch {
		case m.drops(number):
		case m.shared[number]:
			shared, err = appendField(shared, field, wireType, inner)
		case inner != nil && inner.divided && wireType == protowire.BytesType:
			own, shared, err = inner.splitField(own, shared, field)
		default:
			own, err = appendField(own, field, wireType, inner)
		}
		if err != nil {
			return nil, nil, err
		}
		src = src[size:]
	}
	return own, shared, nil
}

// splitField appends a field that holds the message to both sides, to shared only where something is shared.
func (m *message) splitField(own, shared, field []byte) (_, _ []byte, err error) {
	inside := contents(field)
	head, before := len(field)-len(inside), len(shared)
	shared = append(shared, field[:head]...)
	start := len(own)
	own = append(own, field[:head]...)
	if own, shared, err = m.split(own, shared, inside); err != nil {
		return nil, nil, err
	}
	setLength(own[start:], head)
	if len(shared) == before+head {
		return own, shared[:before], nil
	}
	setLength(shared[before:], head)
	return own, shared, nil
}

// replace appends a message whose one field is replaced by what the function appends.
func replace(kept, src []byte, number protowire.Number,
	by func(kept, src []byte) ([]byte, error)) ([]byte, error) {
	for len(src) > 0 {
		found, wireType, size, err := next(src)
		if err != nil {
			return nil, err
		}
		if found == number && wireType == protowire.BytesType {
			if kept, err = appendInner(kept, src[:size], by); err != nil {
				return nil, err
			}
		} else {
			kept = append(kept, src[:size]...)
		}
		src = src[size:]
	}
	return kept, nil
}

// appendInner appends one field of bytes, tag and length included, whose contents are replaced. The length takes as
// many bytes as before, so that it can be filled in afterwards.
func appendInner(kept, field []byte, by func(kept, src []byte) ([]byte, error)) ([]byte, error) {
	inside := contents(field)
	head := len(field) - len(inside)
	kept = append(kept, field[:head]...)
	start := len(kept) - head
	kept, err := by(kept, inside)
	if err != nil {
		return nil, err
	}
	setLength(kept[start:], head)
	return kept, nil
}

// setLength fills in how long a field is behind its head, which is its tag and the room for its length.
func setLength(field []byte, head int) {
	_, tag := protowire.ConsumeVarint(field)
	putLength(field[tag:head], len(field)-head)
}

// putLength writes a length into all the bytes that there are for it.
func putLength(to []byte, length int) {
	const payload, more = 0x7f, 0x80
	for i := range to {
		to[i] = byte(length) & payload
		if i < len(to)-1 {
			to[i] |= more
		}
		length >>= 7
	}
}

// next measures the first field of a message, its tag included.
func next(src []byte) (number protowire.Number, wireType protowire.Type, size int, err error) {
	number, wireType, size = protowire.ConsumeField(src)
	return number, wireType, size, protowire.ParseError(min(size, 0))
}

// contents returns what a field of bytes holds.
func contents(field []byte) []byte {
	_, tag := protowire.ConsumeVarint(field)
	value, _ := protowire.ConsumeBytes(field[tag:])
	return value
}

// sharingOf returns what is known of the shared fields of an object in protobuf, and where its own bytes lie; nil if
// its kind shares nothing, or it is a bookmark, which has no name: what it says of the watch stands in its metadata.
func (m *Mask) sharingOf(raw []byte) (*sharing, []byte, error) {
	if !bytes.HasPrefix(raw, magic) {
		return nil, nil, nil
	}
	envelope := raw[len(magic):]
	rule, err := m.of(envelope)
	if err != nil || rule.sharing == nil {
		return nil, nil, err
	}
	inside, err := last(envelope, rawOfEnvelope)
	if err != nil {
		return nil, nil, err
	}
	meta, err := last(inside, metaOfObject)
	if err != nil {
		return nil, nil, err
	}
	name, err := last(meta, nameOfMeta)
	if err != nil || len(name) == 0 {
		return nil, nil, err
	}
	return rule.sharing, inside, nil
}
