package requestbody

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/scheme"
)

// Aliases may stand for as much as may be sent, and for no more, however they lie in each other.
func TestAliases(t *testing.T) {
	const most = 100_000
	levels := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		levels += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	text := "text: &text " + strings.Repeat("x", 10_000) + "\n"
	for name, row := range map[string]struct {
		body    string
		allowed bool
	}{
		"none":              {"a: '*'\n", true},
		"of little":         {"a: &a {b: c}\nd: [*a, *a]\n", true},
		"as much as may be": {text + "list: [" + strings.Repeat("*text, ", 8) + "]\n", true},
		"more":              {text + "list: [" + strings.Repeat("*text, ", 10) + "]\n", false},
		"in each other":     {levels, false},
		"merged":            {"a: &a {k: " + strings.Repeat("x", 60_000) + "}\nb: {<<: *a}\n", false},
		"of itself":         {"a: &a [*a]\n", false},
		"no YAML":           {"a: *\n", false},
	} {
		if err := checkAliases([]byte(row.body), most); row.allowed != (err == nil) {
			t.Errorf("%s: %v, want it allowed: %v", name, err, row.allowed)
		}
	}
}

// What managed fields hold may nest as deep as a body of JSON may, and what is no JSON may be anything.
func TestProtobufDepth(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs(s).SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	encoded := func(secret *corev1.Secret) []byte {
		var to bytes.Buffer
		if err := scheme.Codecs(s).EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(secret,
			&to); err != nil {
			t.Fatal(err)
		}
		return to.Bytes()
	}
	fields := func(raw string) []byte {
		managed := []metav1.ManagedFieldsEntry{
			{Manager: "first", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:a":{}}}`)}},
			{Manager: "second", FieldsV1: &metav1.FieldsV1{Raw: []byte(raw)}},
		}
		return encoded(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: managed}})
	}
	brackets := &corev1.Secret{Data: map[string][]byte{"a": bytes.Repeat([]byte("{["), 1000)}}
	nested := func(n int) string { return strings.Repeat(`{"}":`, n) + "1" + strings.Repeat("}", n) }
	for name, row := range map[string]struct {
		body    []byte
		allowed bool
	}{
		"none":           {encoded(&corev1.Secret{}), true},
		"as deep as may": {fields(nested(maxDepth)), true},
		"deeper":         {fields(nested(maxDepth + 1)), false},
		"behind a blank": {fields(" \n" + nested(maxDepth+1)), false},
		"much deeper":    {fields(strings.Repeat("[", 600_000)), false},
		"no JSON":        {encoded(brackets), true},
		"no message":     {[]byte(strings.Repeat("{", 1000)), true},
	} {
		if err := checkProtobuf(row.body); row.allowed != (err == nil) {
			t.Errorf("%s: %v, want it allowed: %v", name, err, row.allowed)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		secret := make([]byte, 10_000)
		for i := range secret {
			secret[i] = "{[]}\"\\,:1\x00"[random.IntN(10)]
		}
		if err := checkProtobuf(encoded(&corev1.Secret{Data: map[string][]byte{"a": secret}})); err != nil {
			t.Fatalf("a Secret of %q: %v", secret, err)
		}
	}
}
