package columns

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShapeID names a shape; 0 is none. An ID is never used for a second shape.
type ShapeID uint32

// Shape is what many nodes have in common: taints, spec.unschedulable and all labels but kubernetes.io/hostname.
// A cluster has few shapes however many nodes it has, so what depends on nothing else is judged once per shape.
type Shape struct {
	ID            ShapeID
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool

	key     string
	nodes   int
	scratch *corev1.Node
}

type shapes struct {
	byKey map[string]*Shape
	byID  map[ShapeID]*Shape
	last  ShapeID
}

func newShapes() shapes {
	return shapes{byKey: map[string]*Shape{}, byID: map[ShapeID]*Shape{}}
}

// View is a node as rules that look at its description see it.
type View struct {
	*Shape
	// Name is metadata.name, empty when only the shape is judged.
	Name string

	hostname    string
	hasHostname bool
}

// View returns the node's description. The slot must be known.
func (s *State) View(slot Slot) View {
	id := &s.identity[slot]
	return View{Shape: s.shapes.byID[id.shape], Name: s.names[slot], hostname: id.hostname, hasHostname: id.hasHostname}
}

// ShapeOf returns the shape of the slot's node, 0 where there is no Node object.
func (s *State) ShapeOf(slot Slot) ShapeID { return s.identity[slot].shape }

// Shapes returns how many shapes the nodes have.
func (s *State) Shapes() int { return len(s.shapes.byID) }

// Node returns the name, labels, taints and spec.unschedulable as an object for library functions. It is valid until
// the next call for a node of the same shape.
func (v View) Node() *corev1.Node {
	n := v.scratch
	n.Name = v.Name
	if v.hasHostname {
		n.Labels[corev1.LabelHostname] = v.hostname
	} else {
		delete(n.Labels, corev1.LabelHostname)
	}
	return n
}

// As returns the view of the node as it would be with other labels, taints and spec.unschedulable. Its name and its
// hostname stay, and it has no ShapeID.
func (v View) As(labels map[string]string, taints []corev1.Taint, unschedulable bool) View {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.NodeSpec{Taints: taints,
		Unschedulable: unschedulable}}
	own := shapes{byKey: map[string]*Shape{}, byID: map[ShapeID]*Shape{}}
	v.Shape = own.byID[own.acquire(n)]
	v.Shape.ID = 0
	return v
}

// reshape gives the node its shape and reports whether that is another one than before.
func (s *State) reshape(id *identity, n *corev1.Node) bool {
	if old := s.shapes.byID[id.shape]; old != nil && old.describes(n) {
		return false
	}
	before := id.shape
	id.shape = s.shapes.acquire(n)
	if before != 0 {
		s.shapes.release(before)
	}
	return before != id.shape
}

// describes reports whether the node has this shape.
func (s *Shape) describes(n *corev1.Node) bool {
	if s.Unschedulable != n.Spec.Unschedulable || len(s.Taints) != len(n.Spec.Taints) {
		return false
	}
	for i := range s.Taints {
		if !sameTaint(&s.Taints[i], &n.Spec.Taints[i]) {
			return false
		}
	}
	own := len(n.Labels)
	for key, value := range n.Labels {
		if key == corev1.LabelHostname {
			own--
			continue
		}
		if have, ok := s.Labels[key]; !ok || have != value {
			return false
		}
	}
	return own == len(s.Labels)
}

func sameTaint(a, b *corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func (s *shapes) acquire(n *corev1.Node) ShapeID {
	key := shapeKey(n)
	shape := s.byKey[key]
	if shape == nil {
		s.last++
		shape = &Shape{ID: s.last, Labels: make(map[string]string, len(n.Labels)), Unschedulable: n.Spec.Unschedulable,
			key: key}
		full := make(map[string]string, len(n.Labels))
		for k, v := range n.Labels {
			full[k] = v
			if k != corev1.LabelHostname {
				shape.Labels[k] = v
			}
		}
		for _, taint := range n.Spec.Taints {
			shape.Taints = append(shape.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
		shape.scratch = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: full},
			Spec:       corev1.NodeSpec{Taints: shape.Taints, Unschedulable: shape.Unschedulable},
		}
		s.byKey[key], s.byID[shape.ID] = shape, shape
	}
	shape.nodes++
	return shape.ID
}

func (s *shapes) release(id ShapeID) {
	shape := s.byID[id]
	if shape.nodes--; shape.nodes == 0 {
		delete(s.byKey, shape.key)
		delete(s.byID, id)
	}
}

// shapeKey is equal for nodes of one shape.
func shapeKey(n *corev1.Node) string {
	keys := make([]string, 0, len(n.Labels))
	for k := range n.Labels {
		if k != corev1.LabelHostname {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	b := strconv.AppendBool(nil, n.Spec.Unschedulable)
	for _, k := range keys {
		b = strconv.AppendQuote(b, k)
		b = strconv.AppendQuote(b, n.Labels[k])
	}
	b = append(b, '|')
	for _, t := range n.Spec.Taints {
		b = strconv.AppendQuote(b, t.Key)
		b = strconv.AppendQuote(b, t.Value)
		b = strconv.AppendQuote(b, string(t.Effect))
	}
	return string(b)
}
