// Package fieldmasktest shows a test what a daemon decodes of an object, and what it keeps of that.
package fieldmasktest

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/fieldmask"
)

// ExpectKeptAlike checks that what a daemon's trimming keeps of an object is the same whether it was decoded whole or
// through the mask of the rules beside it, so that who reads what is kept gets the same answers; and that trimming
// changes nothing inside the object, which may be shared.
func ExpectKeptAlike[T runtime.Object](t *testing.T, object T, rules []fieldmask.Rule,
	trim func(object any) (any, error)) {
	t.Helper()
	whole, masked := Decoded(t, object, rules)
	inside, before := reflect.New(reflect.TypeOf(whole).Elem()), whole.DeepCopyObject()
	inside.Elem().Set(reflect.ValueOf(whole).Elem())
	want, err := trim(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := trim(masked); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if !equality.Semantic.DeepEqual(inside.Interface(), before) {
		t.Fatalf("trimming has changed what objects share:\n%+v\nwas %+v", inside, before)
	}
}

// Decoded returns the object as it comes over a watch, whole and through a mask of the rules.
func Decoded[T runtime.Object](t *testing.T, object T, rules []fieldmask.Rule) (whole, masked T) {
	t.Helper()
	mask, err := fieldmask.New(scheme.Scheme, rules...)
	if err != nil {
		t.Fatal(err)
	}
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	raw, err := runtime.Encode(codec, object)
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: raw}}
	encoded, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	decode := func(encoded []byte) T {
		var event metav1.WatchEvent
		if err := event.Unmarshal(encoded); err != nil {
			t.Fatal(err)
		}
		object, err := runtime.Decode(codec, event.Object.Raw)
		if err != nil {
			t.Fatal(err)
		}
		return object.(T)
	}
	whole = decode(encoded)
	if encoded, err = mask.Event(encoded); err != nil {
		t.Fatal(err)
	}
	return whole, decode(encoded)
}
