package aggregation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

func TestDecideDue(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		asked  time.Time
		failed bool
		want   bool
	}{
		{time.Time{}, false, true},
		{now.Add(-freshFor), false, true},
		{now.Add(-freshFor + 1), false, false},
		{now.Add(-failedFor), true, true},
		{now.Add(-failedFor + 1), true, false},
	} {
		if got := decideDue(now, row.asked, row.failed); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

// Of what a server says of the place of a document, nothing but the hash reaches a client.
func TestDecideURL(t *testing.T) {
	const path = "/openapi/v3/apis/wardle.example.com/v1"
	at := func(url string) string {
		quoted, _ := json.Marshal(url)
		return fmt.Sprintf(`{"paths":{"apis/wardle.example.com/v1":{"serverRelativeURL":%s}}}`, quoted)
	}
	for _, row := range []struct {
		name, body string
		code       int
		want, err  string
	}{
		{"good", at(path + "?hash=A"), 200, path + "?hash=A", ""},
		{"without a hash", at(path), 200, path, ""},
		{"elsewhere", at("https://evil.example.com/?hash=A&x=y"), 200, path + "?hash=A", ""},
		{"another's", at("/api/v1/secrets?hash=A%26b"), 200, path + "?hash=A%26b", ""},
		{"no place", at("::"), 200, "", "reading the place of the document"},
		{"long", at(path + "?hash=" + strings.Repeat("a", maxHash)), 200,
			path + "?hash=" + strings.Repeat("a", maxHash), ""},
		{"too long", at(path + "?hash=" + strings.Repeat("a", maxHash+1)), 200, "", "has 257 bytes, want 256 at most"},
		{"not told of", `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/x"}}}`, 200, "", ""},
		{"empty", `{}`, 200, "", ""},
		{"no documents", "404", 404, "", ""},
		{"refused", at(path), 403, "", "the status 403, want 200"},
		{"garbage", "<html>", 200, "", "the answer is no index"},
		{"4 MiB", at(path) + strings.Repeat(" ", maxAnswer-len(at(path))), 200, path, ""},
		{"endless", at(path) + strings.Repeat(" ", maxAnswer+1-len(at(path))), 200, "", "more than 4194304 bytes"},
	} {
		got, err := decideURL(versionOf("wardle"), row.code, []byte(row.body))
		if got != row.want || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %q, %v; want %q, %q", row.name, got, err, row.want, row.err)
		}
	}
}

func TestDecideV3(t *testing.T) {
	const form = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	written, err := proto.Marshal(&openapi_v3.Document{Openapi: "3.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, form, body string
		code             int
		err              string
	}{
		{"JSON", "application/json; charset=utf-8", `{"openapi":"3.0.0"}`, 200, ""},
		{"protobuf", form, string(written), 200, ""},
		{"JSON that says it is protobuf", form, `{"openapi":"3.0.0"}`, 200, "is no OpenAPI document"},
		{"protobuf that says it is JSON", "application/json", string(written), 200, "is no OpenAPI document"},
		{"half of it", "application/json", `{"openapi":"3.0.0","paths":{`, 200, "is no OpenAPI document"},
		{"v2", "application/json", `{"swagger":"2.0"}`, 200, `of the version "" of OpenAPI, want 3`},
		{"a page", "text/html", `{"openapi":"3.0.0"}`, 200, `of the type "text/html", which is no form of OpenAPI`},
		{"no type", "", `{"openapi":"3.0.0"}`, 200, "reading the type"},
		{"refused", "application/json", `{"openapi":"3.0.0"}`, 403, "the status 403, want 200"},
		{"endless", "application/json", `{"openapi":"3.0.0"}` + strings.Repeat(" ", maxAnswer), 200,
			"more than 4194304"},
	} {
		err := decideV3(row.code, row.form, []byte(row.body))
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v, want %q", row.name, err, row.err)
		}
	}
}

// flunderV2 is a document of OpenAPI v2 in which a server of the group says of the kind of another, too.
func flunderV2(group string) string {
	return strings.ReplaceAll(`{"swagger":"2.0","info":{"title":"wardle","version":"v1"},"paths":{
"/apis/GROUP/v1/flunders":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Flunder"}}}}},
"/apis/GROUP/v10/flunders":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Tenth"}}}}},
"/apis/apps/v1/deployments":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Lie"}}}}}},
"definitions":{
"Flunder":{"type":"object","properties":{"size":{"type":"integer","default":1},"meta":{"$ref":"#/definitions/Meta"}},
"x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"Deployment"},
{"group":"GROUP","version":"v1","kind":"Flunder"}]},
"Meta":{"type":"object","x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"StatefulSet"}]},
"Odd":{"type":"object","x-kubernetes-group-version-kind":"Flunder"},
"Tenth":{"type":"object"},"Lie":{"type":"object"}}}`, "GROUP", group)
}

// What a server says of others' versions and kinds is dropped, and a document that would keep clients from reading all
// others is refused.
func TestDecideV2(t *testing.T) {
	good := flunderV2("wardle.example.com")
	for _, row := range []struct {
		name, body string
		code       int
		err        string
	}{
		{"good", good, 200, ""},
		{"refused", good, 500, "the status 500, want 200"},
		{"garbage", "<html>", 200, "is no OpenAPI document"},
		{"v3", `{"openapi":"3.0.0"}`, 200, `of the version "" of OpenAPI, want 2.0`},
		{"another's", flunderV2("other.example.com"), 200, "no path below /apis/wardle.example.com/v1/"},
		{"no paths", `{"swagger":"2.0"}`, 200, "no path below"},
		{"a reference to nothing", strings.ReplaceAll(good, `"Meta":{`, `"Other":{`), 200, "clients cannot read"},
		{"what nobody knows", strings.ReplaceAll(good, `"description":"OK",`, `"description":"OK","a":"b",`), 200, ""},
		{"1 MiB", good + strings.Repeat(" ", maxV2-len(good)), 200, ""},
		{"more", good + strings.Repeat(" ", maxV2+1-len(good)), 200, "more than 1048576 bytes"},
	} {
		_, err := decideV2(versionOf("wardle"), row.code, []byte(row.body))
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v, want %q", row.name, err, row.err)
		}
	}
	if got, err := decideV2(versionOf("wardle"), 404, nil); got != nil || err != nil {
		t.Errorf("a server without documents: %v, %v", got, err)
	}
	got, err := decideV2(versionOf("wardle"), 200, []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(got)
	for _, not := range []string{"apps", "v10", "Tenth", "Lie", "StatefulSet", "default"} {
		if strings.Contains(string(body), not) {
			t.Errorf("the document has %q: %s", not, body)
		}
	}
	if kinds := fmt.Sprint(got.Definitions["Flunder"].Extensions[kindsKey]); kinds !=
		"[map[group:wardle.example.com kind:Flunder version:v1]]" {
		t.Errorf("the kinds are %s", kinds)
	}
	if _, has := got.Definitions["Odd"].Extensions[kindsKey]; has {
		t.Error("a definition is of kinds that are no list")
	}
}

// wideV2 is a document of OpenAPI v2 of less than the size, whose kinds have fields as real ones have.
func wideV2(size int) []byte {
	const kind = 4096
	var paths, definitions strings.Builder
	for i := 0; paths.Len()+definitions.Len() < size-kind; i++ {
		fmt.Fprintf(&paths, `,"/apis/wardle.example.com/v1/kind%d":{"get":{"description":"list objects of kind %[1]d",`+
			`"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Kind%[1]d"}}}}}`, i)
		fmt.Fprintf(&definitions, `,"Kind%d":{"type":"object","properties":{`, i)
		for field := range 20 {
			fmt.Fprintf(&definitions, `"field%d":{"description":"field %[1]d says how much of it there is to be",`+
				`"type":"array","items":{"type":"string"}},`, field)
		}
		definitions.WriteString(`"last":{"type":"integer"}}}`)
	}
	return []byte(`{"swagger":"2.0","info":{"title":"wide","version":"v1"},"paths":{` + paths.String()[1:] +
		`},"definitions":{` + definitions.String()[1:] + `}}`)
}

// What a document costs that is read.
func BenchmarkDecideV2(b *testing.B) {
	for _, size := range []int{maxV2 / 4, maxV2} {
		body := wideV2(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decideV2(versionOf("wardle"), whole, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
