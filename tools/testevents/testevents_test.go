package testevents

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const printed = `{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"pass","Package":"a","Test":"TestOne/row","Elapsed":9}
{"Action":"pass","Package":"a","Test":"TestOne","Elapsed":1.5}
{"Action":"fail","Package":"a","Test":"TestTwo","Elapsed":2}
{"Action":"skip","Package":"a","Test":"TestThree","Elapsed":8}
{"Action":"fail","Package":"a","Elapsed":3.5}
{"Action":"fail","Test":"TestOfNobody"}
`

func TestEnds(t *testing.T) {
	var got []End
	for end, err := range Ends(strings.NewReader(printed)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, end)
	}
	want := []End{
		{Package: "a", Test: "TestOne", Passed: true, Took: 1500 * time.Millisecond},
		{Package: "a", Test: "TestTwo", Took: 2 * time.Second},
		{Package: "a", Took: 3500 * time.Millisecond},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEndsSaysWhatIsNoEvent(t *testing.T) {
	for _, err := range Ends(strings.NewReader("FAIL\n")) {
		if err == nil || !strings.Contains(err.Error(), "events of tests") {
			t.Errorf("no event: %v", err)
		}
	}
}
