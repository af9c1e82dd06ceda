package kindfuzz

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// FuzzKinds: whatever is sent as an object of any kind, in any encoding, decoding, defaulting and checking it does not
// break off; and what is accepted reads back as it is in every encoding, and may be written again as it was read.
func FuzzKinds(f *testing.F) {
	all := kinds(f)
	for i, k := range all {
		for j, e := range k.encodings {
			seed, err := e.encode(k.example.DeepCopyObject())
			if err != nil {
				f.Fatalf("%s in %s: %v", k.name, e.name, err)
			}
			f.Add(uint8(i), uint8(j), seed)
		}
	}
	f.Fuzz(func(t *testing.T, which, how uint8, data []byte) {
		k := all[int(which)%len(all)]
		k.check(t, k.encodings[int(how)%len(k.encodings)], data)
	})
}

// TestExamplesAreAccepted: else the target would only see what is refused. The Makefile finds the kinds by its
// subtests.
func TestExamplesAreAccepted(t *testing.T) {
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			for _, e := range k.encodings {
				data, err := e.encode(k.example.DeepCopyObject())
				if err != nil {
					t.Fatalf("%s: %v", e.name, err)
				}
				if !k.check(t, e, data) {
					t.Errorf("the example in %s is refused", e.name)
				}
			}
		})
	}
}

// check sends data as an object of the kind, and reports whether it is accepted.
func (k *kind) check(t *testing.T, in encoding, data []byte) (accepted bool) {
	t.Helper()
	obj, err := in.decode(data)
	if err != nil {
		return false
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	genericrest.FillObjectMetaSystemFields(m)
	if k.object.NamespaceScoped() && m.GetNamespace() == "" {
		m.SetNamespace("default")
	}
	ctx := request.WithNamespace(t.Context(), m.GetNamespace())
	if k.status != nil {
		other := obj.DeepCopyObject()
		k.status.PrepareForUpdate(ctx, other, k.example.DeepCopyObject())
		k.status.ValidateUpdate(ctx, other, k.example.DeepCopyObject())
	}
	if err := genericrest.BeforeCreate(k.object, ctx, obj); err != nil {
		return false
	}
	want := k.asJSON(t, obj)
	for _, e := range k.encodings {
		encoded, err := e.encode(obj.DeepCopyObject())
		if unsayable(err) {
			continue
		}
		if err != nil {
			t.Errorf("%s that is accepted cannot be written as %s: %v", k.name, e.name, err)
			continue
		}
		back, err := e.decode(encoded)
		if unsayable(err) {
			continue
		}
		if err != nil {
			t.Errorf("%s that is accepted cannot be read as %s: %v", k.name, e.name, err)
			continue
		}
		if got := k.asJSON(t, back); !reflect.DeepEqual(got, want) {
			t.Errorf("%s that is accepted reads back in %s as\n%v, want\n%v", k.name, e.name, got, want)
		}
	}
	m.SetResourceVersion("1")
	again := obj.DeepCopyObject()
	k.object.PrepareForUpdate(ctx, again, obj)
	if errs := k.object.ValidateUpdate(ctx, again, obj); len(errs) > 0 {
		t.Errorf("%s that is accepted may not be written as it was read: %v", k.name, errs.ToAggregate())
	}
	return true
}

// unsayable reports whether YAML cannot carry a character of an object. It has not all characters that JSON has, and
// raw JSON within an object keeps bytes of its strings that are no characters.
func unsayable(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"yaml: control characters are not allowed",
		"yaml: invalid Unicode character", "yaml: invalid leading UTF-8 octet", "yaml: invalid trailing UTF-8 octet",
		"yaml: invalid length of a UTF-8 sequence", "yaml: incomplete UTF-8 octet sequence"},
		func(problem string) bool { return strings.Contains(err.Error(), problem) })
}

// asJSON is an object as clients read it. The first encoding is JSON.
func (k *kind) asJSON(t *testing.T, obj runtime.Object) (content any) {
	t.Helper()
	data, err := k.encodings[0].encode(obj.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	return content
}
