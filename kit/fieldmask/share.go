package fieldmask

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mostShared bounds how many prototypes of a kind are remembered twice over: those in use when there are too many stay.
const mostShared = 2000

// object is one that is decoded on top of what it holds already.
type object interface {
	runtime.Object
	Unmarshal(data []byte) error
}

// sharing decodes the objects of one kind: a copy of a prototype, which holds what many have alike, and on top of it
// what the object has of its own. It is safe for concurrent use.
type sharing struct {
	rule     *message
	of       reflect.Type
	kind     schema.GroupVersionKind
	resource string
	selector fields.Selector

	mu sync.Mutex // guards what follows
	// recent and older are prototypes, by what they were decoded from.
	recent, older map[string]object
	room          []byte
}

// share makes what is known of a rule's shared fields part of the mask.
func (m *Mask) share(top *message, rule Rule, k schema.GroupVersionKind) error {
	if len(rule.Shared) == 0 {
		return nil
	}
	of := reflect.TypeOf(rule.Object).Elem()
	if _, ok := rule.Object.(object); !ok {
		return fmt.Errorf("%s is no message in protobuf", of)
	}
	if rule.Resource == "" {
		return fmt.Errorf("the rule names no resource")
	}
	for _, path := range slices.Sorted(maps.Keys(rule.Shared)) {
		if err := top.shareFields(of, path, rule.Shared[path]); err != nil {
			return err
		}
	}
	top.sharing = &sharing{rule: top, of: of, kind: k, resource: rule.Resource, selector: rule.Selector,
		recent: map[string]object{}}
	if rule.Selector == nil {
		top.sharing.selector = fields.Everything()
	}
	m.shared = append(m.shared, top.sharing)
	return nil
}

// shareFields marks fields of the message at a path below this one. On the way there may be no pointer or list: what is
// the object's own is decoded into the messages around what is shared.
func (m *message) shareFields(of reflect.Type, path string, names []string) error {
	m.divided = true
	for name := range strings.SplitSeq(path, ".") {
		number, field, err := find(of, name)
		if err != nil {
			return err
		}
		if field.Kind() != reflect.Struct {
			return fmt.Errorf("field %q of %s is a %s, of which only all can be shared", name, of, field.Kind())
		}
		m, of = m.inside(number), field
		m.divided = true
	}
	for _, name := range names {
		number, _, err := find(of, name)
		if err != nil {
			return err
		}
		if m.shared == nil {
			m.shared = map[protowire.Number]bool{}
		}
		m.shared[number] = true
	}
	return nil
}

// decode returns the object of these bytes, which it overwrites.
func (s *sharing) decode(raw []byte) (runtime.Object, error) {
	decoded := reflect.New(s.of)
	own, err := s.begin(decoded.Elem(), raw)
	if err != nil {
		return nil, err
	}
	o := decoded.Interface().(object)
	if err := o.Unmarshal(own); err != nil {
		return nil, err
	}
	return o, nil
}

// begin fills in what the object has in common with others, and returns the bytes of the rest.
func (s *sharing) begin(into reflect.Value, raw []byte) (own []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, shared, err := s.rule.split(raw[:0], s.room[:0], raw)
	if err != nil {
		return nil, err
	}
	s.room = shared
	prototype, err := s.prototype(shared)
	if err != nil {
		return nil, err
	}
	into.Set(reflect.ValueOf(prototype).Elem())
	return own, nil
}

// prototype returns the object of what is shared. It forgets those that were not used lately.
func (s *sharing) prototype(shared []byte) (object, error) {
	if known := s.recent[string(shared)]; known != nil {
		return known, nil
	}
	found := s.older[string(shared)]
	if found == nil {
		found = reflect.New(s.of).Interface().(object)
		if err := found.Unmarshal(shared); err != nil {
			return nil, err
		}
	}
	if len(s.recent) >= mostShared {
		s.recent, s.older = map[string]object{}, s.recent
	}
	s.recent[string(shared)] = found
	return found, nil
}
