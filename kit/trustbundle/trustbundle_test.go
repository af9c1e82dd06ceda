package trustbundle_test

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"keelson.dev/kit/trustbundle"
	"keelson.dev/kit/trustbundle/trustbundletest"
)

func TestNamePrefix(t *testing.T) {
	if got := trustbundle.NamePrefix("example.com/a.b"); got != "example.com:a.b:" {
		t.Errorf("got %q", got)
	}
}

// What is wrong with one block is said of each; what is wrong with them together only where each is right.
func TestCheck(t *testing.T) {
	one, two, leaf := trustbundletest.Authority(t, "one"), trustbundletest.Authority(t, "two"),
		trustbundletest.Leaf(t, "leaf")
	rewritten := func(text string, change func(*pem.Block)) string {
		block, _ := pem.Decode([]byte(text))
		change(block)
		return string(pem.EncodeToMemory(block))
	}
	headers := rewritten(one, func(b *pem.Block) { b.Headers = map[string]string{"a": "b"} })
	key := rewritten(one, func(b *pem.Block) { b.Type = "PRIVATE KEY" })
	broken := rewritten(one, func(b *pem.Block) { b.Bytes = b.Bytes[1:] })
	longer := rewritten(one, func(b *pem.Block) { b.Bytes = append(b.Bytes, 0) })
	const none = "must hold at least one PEM block of type CERTIFICATE"
	for _, row := range []struct {
		name, text string
		want       []string // how each complaint begins
	}{
		{"one", one, nil},
		{"two", one + two, nil},
		{"text for people", "# the first\n" + one + "\n# the second\n\n" + two + "# the end", nil},
		{"nothing", "", []string{none}},
		{"no block", "hello", []string{none}},
		{"half a block", one[:len(one)/2], []string{none}},
		{"another type", one + key, []string{`entry 1 must be a PEM block of type CERTIFICATE, not "PRIVATE KEY"`}},
		{"headers", headers, []string{"entry 0 must be a PEM block without headers"}},
		{"no certificate", broken, []string{"entry 0 must be an X.509 certificate: "}},
		{"more than a certificate", longer, []string{"entry 0 must be an X.509 certificate: "}},
		{"no authority's", one + leaf, []string{"entry 1 must be the certificate of an authority: "}},
		{"one twice", one + two + one, []string{"entry 2 is the certificate of entry 0 again"}},
		{"one thrice", one + one + one, []string{"entry 1 is the certificate of entry 0", "entry 2 is the cert"}},
		{"several", one + one + key + leaf, []string{"entry 2 must be a PEM block of", "entry 3 must be the cert"}},
	} {
		got := trustbundle.Check(row.text)
		if !slices.EqualFunc(got, row.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// The error for a bundle of very many wrong entries names a few.
func TestComplaintsAreBounded(t *testing.T) {
	one := trustbundletest.Authority(t, "one")
	for _, entry := range []string{"-----BEGIN A-----\n-----END A-----\n", one} {
		for entries, want := range map[int]int{10: 10, 11: 10, 1000: 10} {
			if entry == one {
				entries++ // the first one is right
			}
			if got := trustbundle.Check(strings.Repeat(entry, entries)); len(got) != want {
				t.Errorf("%d entries such as %q: %d complaints, want %d", entries, entry[:20], len(got), want)
			}
		}
	}
}

// FuzzCheck: no text is too strange, and what is right is right in any order.
func FuzzCheck(f *testing.F) {
	f.Add("hello")
	f.Add(trustbundletest.Authority(f, "one"))
	f.Fuzz(func(t *testing.T, text string) {
		if len(trustbundle.Check(text)) > 0 {
			return
		}
		var reversed string
		for block := range trustbundle.Blocks(text) {
			reversed = string(pem.EncodeToMemory(block)) + reversed
		}
		if wrong := trustbundle.Check(reversed); len(wrong) > 0 {
			t.Errorf("%q is right, in another order it is not: %q", text, wrong)
		}
	})
}
