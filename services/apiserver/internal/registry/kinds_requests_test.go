package registry_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/yaml"
)

// testStrictness sends fields that the kind does not have, and fields twice, and wants the API's words for it.
func (k *servedKind) testStrictness(t *testing.T) {
	name, _ := k.create(t, nil)
	_, content := k.next(t)
	for what, row := range map[string]struct{ mistake, want string }{
		"unknown":          {`{"unheardOf":1,`, `unknown field "unheardOf"`},
		"unknown, inside":  {`"metadata":{"unheardOf":1,`, `unknown field "metadata.unheardOf"`},
		"twice":            {`{"kind":"` + k.resource.Kind + `",`, `duplicate field "kind"`},
		"twice, inside":    {`"metadata":{"selfLink":"a","selfLink":"b",`, `duplicate field "metadata.selfLink"`},
		"in another case":  {`{"KIND":"x",`, `unknown field "KIND"`},
		"no field at all":  {`{`, ""},
		"a field as it is": {`"metadata":{`, ""},
	} {
		mistaken := func(content map[string]any) []byte {
			where := row.mistake[:strings.Index(row.mistake, "{")+1]
			return []byte(strings.Replace(string(asJSON(t, content)), where, row.mistake, 1))
		}
		refusal := fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			k.resource.Kind, k.version.Version, k.resource.Kind, row.want)
		for how, write := range map[string]func(query url.Values) answer{
			"created": func(query url.Values) answer {
				return k.ask(t, request{method: http.MethodPost, query: query, body: mistaken(content)})
			},
			"updated": func(query url.Values) answer { return k.update(t, name, query, mistaken) },
		} {
			if got := write(url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}); row.want == "" &&
				got.status >= 300 || row.want != "" && (got.status != http.StatusBadRequest ||
				got.object(t)["message"] != refusal) {
				t.Errorf("%s, %s strictly: %s, want 400 %s", what, how, got, refusal)
			}
			if got := write(url.Values{"dryRun": {"All"}}); got.status >= 300 ||
				strings.Join(warnings(got), ", ") != row.want {
				t.Errorf("%s, %s: %s with the warnings %q, want %s", what, how, got, warnings(got), row.want)
			}
			if got := write(url.Values{"dryRun": {"All"}, "fieldValidation": {"Ignore"}}); got.status >= 300 ||
				len(warnings(got)) > 0 {
				t.Errorf("%s, %s unchecked: %s with the warnings %q", what, how, got, warnings(got))
			}
		}
	}
	k.checkStrictPatches(t, name)
	k.checkStrictYAML(t, content)
}

// update writes an object with a change, and tries again if another client has written it meanwhile.
func (k *servedKind) update(t *testing.T, name string, query url.Values,
	change func(map[string]any) []byte) (got answer) {
	t.Helper()
	for range 20 {
		live := k.ask(t, request{method: http.MethodGet, name: name}).object(t)
		got = k.ask(t, request{method: http.MethodPut, name: name, query: query, body: change(live)})
		if got.status != http.StatusConflict {
			break
		}
	}
	return got
}

// warnings are the texts of an answer's warnings about fields.
func warnings(a answer) []string {
	var texts []string
	for _, line := range a.header.Values("Warning") {
		text := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, `299 - "`), `"`), `\"`, `"`)
		if strings.Contains(text, " field ") {
			texts = append(texts, text)
		}
	}
	return texts
}

func (k *servedKind) checkStrictPatches(t *testing.T, name string) {
	t.Helper()
	for want, patch := range map[string]string{
		`unknown field "unheardOf"`:         `{"unheardOf":1}`,
		`unknown field "metadata.heard.of"`: `{"metadata":{"heard.of":1}}`,
		`duplicate field "metadata"`:        `{"metadata":{},"metadata":{}}`,
	} {
		for _, how := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
			if k.custom && how == types.StrategicMergePatchType {
				continue
			}
			got := k.ask(t, request{method: http.MethodPatch, name: name, contentType: string(how), body: []byte(patch),
				query: url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}})
			if got.status != http.StatusUnprocessableEntity && got.status != http.StatusBadRequest ||
				!strings.Contains(fmt.Sprint(got.object(t)["message"]), "strict decoding error: "+want) {
				t.Errorf("%s as %s: %s, want %s", patch, how, got, want)
			}
		}
	}
}

func (k *servedKind) checkStrictYAML(t *testing.T, content map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	for mistake, want := range map[string]string{
		"unheardOf: 1\n":                     `unknown field "unheardOf"`,
		"kind: " + k.resource.Kind + "\n":    `key "kind" already set in map`,
		"apiVersion: v1\napiVersion: v1\n":   `key "apiVersion" already set in map`,
		"":                                   "",
		"# a comment is no field: kind: x\n": "",
	} {
		got := k.ask(t, request{method: http.MethodPost, contentType: runtime.ContentTypeYAML,
			body:  append([]byte(mistake), text...),
			query: url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}})
		if want == "" && got.status >= 300 || want != "" && (got.status != http.StatusBadRequest ||
			!strings.Contains(fmt.Sprint(got.object(t)["message"]), want)) {
			t.Errorf("%q in YAML: %s, want %s", mistake, got, want)
		}
	}
}

// testEncodings writes and reads the kind in each encoding, and wants those that it has not to be refused as such.
func (k *servedKind) testEncodings(t *testing.T) {
	for _, none := range k.absentEncodings() {
		name, content := k.create(t, nil)
		if got := k.ask(t, request{method: http.MethodGet, name: name, accept: none}); got.status !=
			http.StatusNotAcceptable {
			t.Errorf("read as %s: %s, want 406", none, got)
		}
		if got := k.ask(t, request{method: http.MethodPost, contentType: none, body: asJSON(t, content)}); got.status !=
			http.StatusUnsupportedMediaType {
			t.Errorf("written as %s: %s, want 415", none, got)
		}
	}
	if k.custom {
		return
	}
	codecs := serializer.NewCodecFactory(k.types)
	decode := func(from answer) runtime.Object {
		t.Helper()
		object, kind, err := codecs.UniversalDeserializer().Decode(from.body, nil, nil)
		if err != nil || kind.GroupVersion() != k.version {
			t.Fatalf("%v: %v of %s", err, kind, from)
		}
		return object
	}
	name, content := k.next(t)
	written := decode(answer{body: asJSON(t, content)})
	body, err := runtime.Encode(protobuf.NewSerializer(k.types, k.types), written)
	if err != nil {
		t.Fatal(err)
	}
	const binary = runtime.ContentTypeProtobuf
	created := k.ask(t, request{method: http.MethodPost, contentType: binary, accept: binary, body: body})
	if created.status != http.StatusCreated || created.header.Get("Content-Type") != binary {
		t.Fatalf("written as protobuf: %s %s", created.header.Get("Content-Type"), created)
	}
	for _, encoding := range []string{binary, runtime.ContentTypeYAML} {
		k.checkReadAs(t, name, encoding, decode)
		list := decode(k.ask(t, request{method: http.MethodGet, accept: encoding, query: url.Values{
			"fieldSelector": {"metadata.name=" + name}}}))
		if meta.LenList(list) != 1 {
			t.Errorf("listed as %s there are %d", encoding, meta.LenList(list))
		}
	}
}

// checkReadAs wants an object to be the same in an encoding as in JSON.
func (k *servedKind) checkReadAs(t *testing.T, name, encoding string, decode func(answer) runtime.Object) {
	t.Helper()
	for range 20 {
		want := decode(k.ask(t, request{method: http.MethodGet, name: name}))
		got := decode(k.ask(t, request{method: http.MethodGet, name: name, accept: encoding}))
		if versionOf(t, got) != versionOf(t, want) {
			continue // another client wrote it meanwhile
		}
		if encoding == runtime.ContentTypeProtobuf {
			// Of an object inside of another one it has neither kind nor version.
			body, err := runtime.Encode(protobuf.NewSerializer(k.types, k.types), want)
			if err != nil {
				t.Fatal(err)
			}
			want = decode(answer{body: body})
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("read as %s it is\n%+v, want\n%+v", encoding, got, want)
		}
		return
	}
	t.Errorf("%s is written again and again", name)
}

func versionOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	m, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return m.GetResourceVersion()
}

// absentEncodings are those that the kind has not: of CBOR none of Kubernetes's kinds has any by default.
func (k *servedKind) absentEncodings() []string {
	if k.custom {
		return []string{runtime.ContentTypeCBOR, runtime.ContentTypeProtobuf}
	}
	return []string{runtime.ContentTypeCBOR}
}

// nameTries is how often the server makes a name up for an object.
const nameTries = 8

// namesInTurn makes names as the server does, but for the prefixes for which a test says the names.
type namesInTurn struct {
	names.NameGenerator
	mu   sync.Mutex
	next map[string][]string
}

// GenerateName implements names.NameGenerator.
func (n *namesInTurn) GenerateName(base string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if next := n.next[base]; len(next) > 0 {
		n.next[base] = next[1:]
		return next[0]
	}
	return n.NameGenerator.GenerateName(base)
}

// say lets the next names with a prefix be these.
func (n *namesInTurn) say(base string, next ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next[base] = next
}

// unused is the number of names that were not used yet.
func (n *namesInTurn) unused(base string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.next[base])
}

// replaceNames lets the servers that start from now on make names up as a test says.
func replaceNames(t *testing.T) *namesInTurn {
	t.Helper()
	n := &namesInTurn{NameGenerator: names.SimpleNameGenerator, next: map[string][]string{}}
	names.SimpleNameGenerator = n
	t.Cleanup(func() { names.SimpleNameGenerator = n.NameGenerator })
	return n
}

// testGenerateName lets the server make names up that others have, and wants it to try eight times.
func (k *servedKind) testGenerateName(t *testing.T, made *namesInTurn) {
	if k.NameIn != "" {
		t.Skip("objects of this kind are named by what they are")
	}
	taken, _ := k.create(t, nil)
	base, _, _ := strings.Cut(k.Names, "%d")
	for _, row := range []struct {
		taken, unused, want int
	}{{0, 0, http.StatusCreated}, {1, 0, http.StatusCreated}, {nameTries - 1, 0, http.StatusCreated},
		{nameTries, 1, http.StatusConflict}, {nameTries + 1, 2, http.StatusConflict}} {
		free, content := k.next(t)
		object := &unstructured.Unstructured{Object: content}
		object.SetName("")
		object.SetGenerateName(base)
		made.say(base, append(slices.Repeat([]string{taken}, row.taken), free)...)
		got := k.ask(t, request{method: http.MethodPost, body: asJSON(t, content)})
		if got.status != row.want || made.unused(base) != row.unused {
			t.Errorf("after %d names that are taken: %s with %d names unused, want %d with %d", row.taken, got,
				made.unused(base), row.want, row.unused)
			continue
		}
		answered := &unstructured.Unstructured{Object: got.object(t)}
		if reason, _, _ := unstructured.NestedString(answered.Object, "reason"); row.want == http.StatusConflict {
			if reason != string(metav1.StatusReasonAlreadyExists) {
				t.Errorf("after %d names that are taken: %s", row.taken, got)
			}
		} else if answered.GetName() != free {
			t.Errorf("after %d names that are taken it is named %s, want %s", row.taken, answered.GetName(), free)
		}
	}
	made.say(base)
}

// testDeleteCollection deletes by labels, by fields and page by page, and wants all else to stay.
func (k *servedKind) testDeleteCollection(t *testing.T) {
	if !slices.Contains(k.resource.Verbs, "deletecollection") {
		if got := k.ask(t, request{method: http.MethodDelete}); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s, want 405", got)
		}
		return
	}
	var all []string
	for _, label := range []string{"a", "a", "b", "c", "c", "c"} {
		name, _ := k.create(t, map[string]string{"suite": label})
		all = append(all, name)
	}
	for _, row := range []struct {
		query string
		want  int
		left  int
	}{
		{"labelSelector=suite%3Da&dryRun=All", 200, 6},
		{"labelSelector=suite%3D%3D%3Da", 400, 6},
		{"labelSelector=suite&fieldSelector=metadata.nothing%3Dx", 400, 6},
		{"labelSelector=suite%3Dz", 200, 6},
		{"labelSelector=suite%3Da", 200, 4},
		{"fieldSelector=metadata.name%3D" + all[2], 200, 3},
		{"labelSelector=suite%20in%20(a,b,c)&fieldSelector=metadata.name%3D" + all[3], 200, 2},
		{"labelSelector=suite%3Dc&limit=1&fieldSelector=metadata.name!%3D" + all[3], 200, 1},
	} {
		query, err := url.ParseQuery(row.query)
		if err != nil {
			t.Fatal(err)
		}
		got := k.ask(t, request{method: http.MethodDelete, query: query})
		if left := k.left(t, all); got.status != row.want || len(left) != row.left {
			t.Errorf("?%s: %s, %v are left, want %d with %d left", row.query, got, left, row.want, row.left)
		}
	}
}

// left returns the objects that were not deleted yet, including those that wait for others.
func (k *servedKind) left(t *testing.T, objects []string) []string {
	t.Helper()
	var left []string
	for _, name := range objects {
		got := k.ask(t, request{method: http.MethodGet, name: name})
		if got.status == http.StatusOK &&
			(&unstructured.Unstructured{Object: got.object(t)}).GetDeletionTimestamp() == nil {
			left = append(left, name)
		}
	}
	return left
}
