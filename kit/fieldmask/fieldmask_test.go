package fieldmask

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/randfill"
)

var codec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// podRule keeps a little of a Pod at three depths.
var podRule = Rule{Object: &corev1.Pod{}, Only: map[string][]string{
	"metadata": {"name", "labels", "managedFields"}, "spec": {"nodeName", "containers", "volumes"},
	"spec.containers": {"name", "resources"}, "spec.containers.resources": {"requests"},
	"status": {"phase", "conditions"},
}}

// clearPod does the same to a Pod that was decoded whole.
func clearPod(p *corev1.Pod) {
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Labels: p.Labels}
	p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName, Containers: p.Spec.Containers, Volumes: p.Spec.Volumes}
	for i, c := range p.Spec.Containers {
		p.Spec.Containers[i] = corev1.Container{Name: c.Name,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}}
	}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions}
}

// kinds are all of the scheme that have metadata, and the metadata alone.
func kinds() []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for k, of := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.New(of).Interface().(metav1.Object); ok && k.Version != runtime.APIVersionInternal {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return found
}

func event(t *testing.T, what string, object runtime.Object) []byte {
	t.Helper()
	raw, err := runtime.Encode(codec, object)
	if err != nil {
		t.Fatal(err)
	}
	e := metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: raw}}
	encoded, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func decode(encoded []byte) (string, runtime.Object, error) {
	var e metav1.WatchEvent
	if err := e.Unmarshal(encoded); err != nil {
		return "", nil, err
	}
	object, err := runtime.Decode(codec, e.Object.Raw)
	return e.Type, object, err
}

// clearDropped does to an object what the mask does before it is decoded.
func clearDropped(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		clearPod(o)
	case metav1.Object:
		o.SetManagedFields(nil)
	}
}

func newMask(t testing.TB, rules ...Rule) *Mask {
	t.Helper()
	mask, err := New(scheme.Scheme, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

// filled returns an object of the kind with anything in it.
func filled(t *testing.T, k schema.GroupVersionKind, seed int64) runtime.Object {
	t.Helper()
	object, err := scheme.Scheme.New(k)
	if err != nil {
		t.Fatal(err)
	}
	fill := randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 3).MaxDepth(12).AllowUnexportedFields(false).Funcs(
		func(m *metav1.FieldsV1, c randfill.Continue) { m.SetRawString(`{"f:spec":{}}`) },
		func(raw *runtime.RawExtension, c randfill.Continue) { raw.Raw = []byte(`{"a":1}`) },
	)
	fill.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(k)
	return object
}

// For every kind, decoding masked bytes gives the same as decoding all of them and dropping what the mask drops.
func TestMaskedIsDecodedAndCleared(t *testing.T) {
	mask, dropped := newMask(t, podRule), 0
	for _, k := range kinds() {
		for seed := range int64(6) {
			encoded := event(t, "MODIFIED", filled(t, k, seed))
			whole := bytes.Clone(encoded)
			_, want, err := decode(whole)
			if err != nil {
				t.Fatalf("%s: %v", k, err)
			}
			had := len(want.(metav1.Object).GetManagedFields())
			clearDropped(want)
			masked, err := mask.Event(encoded)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", k, seed, err)
			}
			what, got, err := decode(masked)
			if err != nil || what != "MODIFIED" || !equality.Semantic.DeepEqual(got, want) {
				t.Fatalf("%s, seed %d: %s %v\ngot  %+v\nwant %+v", k, seed, what, err, got, want)
			}
			if had > 0 && len(masked) >= len(whole) {
				t.Fatalf("%s, seed %d: %d bytes of %d are left", k, seed, len(masked), len(whole))
			}
			dropped += had
		}
	}
	if dropped < 100 {
		t.Errorf("only %d managed fields in all", dropped)
	}
}

// An object outside an event is masked as one in an event; other encodings than protobuf stay as they are.
func TestObject(t *testing.T) {
	mask := newMask(t, podRule)
	for seed := range int64(20) {
		object := filled(t, corev1.SchemeGroupVersion.WithKind("Pod"), seed)
		raw, err := runtime.Encode(codec, object)
		if err != nil {
			t.Fatal(err)
		}
		want, err := runtime.Decode(codec, bytes.Clone(raw))
		if err != nil {
			t.Fatal(err)
		}
		clearDropped(want)
		masked, err := mask.Object(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := runtime.Decode(codec, masked); err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v\ngot  %+v\nwant %+v", seed, err, got, want)
		}
	}
	for _, text := range []string{"", "{}", `{"kind":"Pod"}`} {
		if got, err := mask.Object([]byte(text)); err != nil || string(got) != text {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
	if _, err := mask.Object([]byte("k8s\x00\x0a\x7f")); err == nil {
		t.Error("a damaged envelope is taken")
	}
}

// Damaged bytes are an error or the same object as without a mask; never anything else, and never more bytes.
func TestDamagedBytes(t *testing.T) {
	mask, refused, same := newMask(t, podRule), 0, 0
	var events [][]byte
	for seed := range int64(20) {
		for _, name := range []string{"Pod", "Node"} {
			events = append(events, event(t, "ADDED", filled(t, corev1.SchemeGroupVersion.WithKind(name), seed)))
		}
	}
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		encoded := bytes.Clone(events[r.IntN(len(events))])
		for range 1 + r.IntN(3) {
			encoded[r.IntN(len(encoded))] = byte(r.IntN(256))
		}
		if r.IntN(4) == 0 {
			encoded = encoded[:r.IntN(len(encoded))]
		}
		size := len(encoded)
		_, want, wantErr := decode(bytes.Clone(encoded))
		masked, err := mask.Event(encoded)
		if err != nil {
			refused++
			continue
		}
		if len(masked) > size {
			t.Fatalf("seed %d: %d bytes of %d", seed, len(masked), size)
		}
		_, got, err := decode(masked)
		if err != nil || wantErr != nil {
			continue
		}
		clearDropped(want)
		if !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d:\ngot  %+v\nwant %+v", seed, got, want)
		}
		same++
	}
	if refused < 1000 || same < 1000 {
		t.Errorf("%d refused, %d the same", refused, same)
	}
}

// What is no object of a kind with metadata stays as it is.
func TestOthersStayAsTheyAre(t *testing.T) {
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "x"}, Message: "too old", Code: 410}
	bookmark := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	for name, encoded := range map[string][]byte{
		"a bookmark": event(t, "BOOKMARK", bookmark), "an error": event(t, "ERROR", status), "nothing": {},
		"no object": {0x0a, 1, 'x'},
		"JSON":      {0x12, 4, 0x0a, 2, '{', '}'},
	} {
		want := bytes.Clone(encoded)
		if got, err := newMask(t, podRule).Event(encoded); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %x of %x", name, err, got, want)
		}
	}
}

// A rule is refused if it names a missing field, fields within one that can only be kept or shared whole, an
// unregistered type, or no resource.
func TestWrongRules(t *testing.T) {
	only := func(path, name string) Rule {
		return Rule{Object: &corev1.Pod{}, Only: map[string][]string{path: {name}}}
	}
	share := func(resource, path, name string) Rule {
		return Rule{Object: &corev1.Pod{}, Resource: resource, Shared: map[string][]string{path: {name}}}
	}
	for want, rule := range map[string]Rule{
		`v1.PodSpec has no field "nodename"`:               only("spec", "nodename"),
		`v1.Pod has no field "specs"`:                      only("specs", "nodeName"),
		`string has no field "x", for it is no message`:    only("spec.nodeName", "x"),
		"no kind is registered for the type runtime.Unkno": {Object: &runtime.Unknown{}},
		`v1.PodSpec has no field "nodenames"`:              share("pods", "spec", "nodenames"),
		`v1.Pod has no field "spek"`:                       share("pods", "spek", "nodeName"),
		"the rule names no resource":                       share("", "spec", "nodeName"),
		`field "securityContext" of v1.PodSpec is a ptr`:   share("pods", "spec.securityContext", "runAsUser"),
		`field "containers" of v1.PodSpec is a slice`:      share("pods", "spec.containers", "name"),
		`field "nodeName" of v1.PodSpec is a string`:       share("pods", "spec.nodeName", "x"),
	} {
		if _, err := New(scheme.Scheme, rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const watchType = "application/vnd.kubernetes.protobuf;stream=watch"

// answer is what a client reads where the server sends the body.
func answer(t *testing.T, contentType string, status int, body io.Reader) ([]byte, error) {
	t.Helper()
	config := newMask(t, podRule).Over(&rest.Config{Transport: roundTripper(func(*http.Request) (*http.Response,
		error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}},
			Body: io.NopCloser(body)}, nil
	})})
	over, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://apiserver/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := over.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return io.ReadAll(iotest.OneByteReader(response.Body))
}

func framed(encoded []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}

// Events come masked one after the other, however the bytes are cut; a body that is no watch in protobuf stays.
func TestStream(t *testing.T) {
	var sent, want []byte
	mask := newMask(t, podRule)
	for seed := range int64(50) {
		encoded := event(t, "ADDED", filled(t, corev1.SchemeGroupVersion.WithKind("Pod"), seed))
		sent = append(sent, framed(encoded)...)
		masked, err := mask.Event(encoded)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, framed(masked)...)
	}
	huge := framed(make([]byte, largest+1))
	failed := errors.New("connection lost")
	for name, test := range map[string]struct {
		contentType string
		status      int
		body        io.Reader
		want        []byte
		err         string
	}{
		"at once":      {watchType, 200, bytes.NewReader(sent), want, ""},
		"byte by byte": {watchType, 200, iotest.OneByteReader(bytes.NewReader(sent)), want, ""},
		"cut off": {watchType, 200, bytes.NewReader(append(bytes.Clone(sent), 0, 0, 0, 9, 1)),
			append(bytes.Clone(want), 0, 0, 0, 9, 1), ""},
		"cut off in a head": {watchType, 200, bytes.NewReader(append(bytes.Clone(sent), 0, 0)),
			append(bytes.Clone(want), 0, 0), ""},
		"connection lost": {watchType, 200, io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(failed)), want,
			"connection lost"},
		"damaged": {watchType, 200, bytes.NewReader(append(bytes.Clone(sent), 0, 0, 0, 2, 0x12, 9)), want,
			"masking fields: damaged watch event: unexpected EOF"},
		"longer than taken": {watchType, 200, bytes.NewReader(append(huge, sent...)),
			append(bytes.Clone(huge), want...), ""},
		"empty": {watchType, 200, bytes.NewReader(nil), []byte{}, ""},
		"an event of none": {watchType, 200, bytes.NewReader(append(make([]byte, 4), sent...)),
			append(make([]byte, 4), want...), ""},
		"a list":          {"application/vnd.kubernetes.protobuf", 200, bytes.NewReader(sent), sent, ""},
		"JSON":            {"application/json;stream=watch", 200, bytes.NewReader(sent), sent, ""},
		"an error's body": {watchType, 500, bytes.NewReader(sent), sent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answer(t, test.contentType, test.status, test.body)
			if !bytes.Equal(got, test.want) {
				t.Errorf("%d bytes, want %d", len(got), len(test.want))
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	randfill.NewWithSeed(3).NilChance(.5).NumElements(1, 3).Fill(&pod.Spec)
	raw, err := runtime.Encode(codec, pod)
	if err != nil {
		b.Fatal(err)
	}
	e := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}}
	encoded, err := e.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	mask, buffer := newMask(b, podRule), make([]byte, 0, len(encoded))
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buffer = append(buffer[:0], encoded...)
			if _, _, err := decode(buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("masked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buffer = append(buffer[:0], encoded...)
			masked, err := mask.Event(buffer)
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := decode(masked); err != nil {
				b.Fatal(err)
			}
		}
	})
}
