package testtimes

import (
	"strings"
	"testing"

	"keelson.dev/tools/testevents"
)

const printed = `{"Action":"run","Package":"keelson.dev/kit/a","Test":"TestOne"}
{"Action":"pass","Package":"keelson.dev/kit/a","Test":"TestOne/row","Elapsed":9}
{"Action":"pass","Package":"keelson.dev/kit/a","Test":"TestOne","Elapsed":1.5}
{"Action":"fail","Package":"keelson.dev/kit/a","Test":"TestTwo","Elapsed":2}
{"Action":"skip","Package":"keelson.dev/kit/a","Test":"TestThree","Elapsed":8}
{"Action":"fail","Package":"keelson.dev/kit/a","Elapsed":3.52}
{"Action":"pass","Package":"keelson.dev/kit/b","Elapsed":4}
{"Action":"skip","Package":"keelson.dev/kit/c","Elapsed":7}
`

func TestSlowest(t *testing.T) {
	packages, tests, err := Read(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		ends  []testevents.End
		count int
		want  string
	}{
		{packages, 2, "    4.0 s  kit/b\n    3.5 s  kit/a\n"},
		{packages, 1, "    4.0 s  kit/b\n"},
		{tests, 20, "    2.0 s  kit/a TestTwo\n    1.5 s  kit/a TestOne\n"},
		{nil, 20, ""},
	} {
		var got strings.Builder
		if err := Print(&got, Slowest(row.ends, row.count)); err != nil || got.String() != row.want {
			t.Errorf("%q, %v, want %q", got.String(), err, row.want)
		}
	}
}

func TestReadSaysWhatIsNoEvent(t *testing.T) {
	if _, _, err := Read(strings.NewReader("FAIL\n")); err == nil || !strings.Contains(err.Error(), "events of tests") {
		t.Errorf("no event: %v", err)
	}
}
