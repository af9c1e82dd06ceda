package failures

import (
	"fmt"
	"strings"
	"testing"
)

const events = `
{"Action":"start","Package":"keelson.dev/a"}
{"Action":"run","Package":"keelson.dev/a","Test":"TestOne"}
{"Action":"output","Package":"keelson.dev/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"run","Package":"keelson.dev/a","Test":"TestOne/row"}
{"Action":"output","Package":"keelson.dev/a","Test":"TestOne/row","Output":"    a_test.go:1: 2, want 1\n"}
{"Action":"output","Package":"keelson.dev/a","Test":"TestOne/row","Output":"    a_test.go:2: 3, want 1\n"}
{"Action":"output","Package":"keelson.dev/a","Test":"TestOne/row","Output":"    a_test.go:3: 4, want 1\n"}
{"Action":"output","Package":"keelson.dev/a","Test":"TestOne/row","Output":"    --- FAIL: TestOne/row (0.00s)\n"}
{"Action":"fail","Package":"keelson.dev/a","Test":"TestOne/row"}
{"Action":"fail","Package":"keelson.dev/a","Test":"TestOne"}
{"Action":"fail","Package":"keelson.dev/a","Test":"TestTwice"}
{"Action":"pass","Package":"keelson.dev/a","Test":"TestTwice"}
{"Action":"pass","Package":"keelson.dev/a","Test":"TestWell"}
{"Action":"fail","Package":"keelson.dev/a"}
{"Action":"build-output","ImportPath":"keelson.dev/b","Output":"# keelson.dev/b\n"}
{"Action":"build-output","ImportPath":"keelson.dev/b","Output":"b/b.go:1:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"keelson.dev/b"}
{"Action":"fail","Package":"keelson.dev/b"}
`

func TestPrint(t *testing.T) {
	f := New()
	if err := f.Add(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	const want = "a TestOne/row\n    a_test.go:1: 2, want 1\n    a_test.go:2: 3, want 1\n" +
		"b \n    b/b.go:1:1: undefined: x\n"
	if err := f.Print(&got); err != nil || got.String() != want {
		t.Errorf("%q, %v, want %q", &got, err, want)
	}
}

// A module in which much fails hides none of the others.
func TestEachModuleIsNamed(t *testing.T) {
	f := New()
	for i := range 2 * most {
		f.note("fail", name{"keelson.dev/services/c/internal/a", fmt.Sprintf("Test%02d", i)}, "")
		f.note("fail", name{"keelson.dev/test/e2e", fmt.Sprintf("Test%02d", i)}, "")
	}
	for _, pkg := range []string{"keelson.dev/services/c/internal/b", "keelson.dev/services/d", "keelson.dev/kit/z",
		"keelson.dev/test/images/x", "keelson.dev/tools/pins/y"} {
		f.note("fail", name{pkg, "Test"}, "")
	}
	var got strings.Builder
	const want = `kit/z Test
services/c/internal/a Test00
services/c/internal/a Test01
services/c/internal/a Test02
services/c/internal/b Test
services/d Test
test/e2e Test00
test/e2e Test01
test/e2e Test02
test/e2e Test03
test/images/x Test
tools/pins/y Test
and 41 more
`
	if err := f.Print(&got); err != nil || got.String() != want {
		t.Errorf("%v, %s", err, &got)
	}
}

func TestAddSaysWhatIsNoEvent(t *testing.T) {
	if err := New().Add(strings.NewReader("FAIL\n")); err == nil {
		t.Error("FAIL passed for an event")
	}
}
