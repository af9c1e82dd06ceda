package credentialprovider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a provider with all fields.
const good = `
- name: ecr
  matchImages: ["*.dkr.ecr.*.amazonaws.com", "registry.io:8080/path"]
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get-credentials]
  env:
  - {name: AWS_PROFILE, value: example}
  tokenAttributes:
    serviceAccountTokenAudience: registry
    cacheType: Token
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [example.com/role]
    optionalServiceAccountAnnotationKeys: [example.com/Tenant, plain]
`

const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:"

// Each wrong field gives one sentence that begins with its path.
func TestConfiguration(t *testing.T) {
	const at = "providers[0]."
	const pattern = " must be HOST[:PORT][/PATH] without a scheme; * may stand only in HOST"
	for _, row := range []struct{ old, new, want string }{
		{"", "", ""},
		{"12h", "0s", ""},
		{"cacheType: Token", "cacheType: ServiceAccount", ""},
		{"kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1",
			`apiVersion: "kubelet.config.k8s.io/v1beta1", it must be "kubelet.config.k8s.io/v1"`},
		{"kind: CredentialProviderConfig", "kind: KubeletConfiguration",
			`kind: "KubeletConfiguration", it must be "CredentialProviderConfig"`},
		{"args:", "argz:", at + "argz: CredentialProviderConfig has no such field, or it stands twice"},
		{"name: ecr", "Name: ecr", at + "Name: CredentialProviderConfig has no such field, or it stands twice"},
		{head, head + " 7\nx:", "providers: must be a list"},
		{good, " []", "providers: must name at least one provider"},
		{head + good, "", `apiVersion: "", it must be "kubelet.config.k8s.io/v1"`},
		{head + good, "[]", "the file: must have fields"},
		{head + good, "{", "is no YAML: "},
		{"name: ecr", "name: [ecr]", at + "name: must be a text; put it in quotes if it looks like something else"},
		{"name: ecr", "name: 7", at + "name: must be a text; put it in quotes if it looks like something else"},
		{"name: ecr", "args: []", `is no YAML: yaml: unmarshal errors: line 8: key "args" already set in map`},
		{"name: ecr", `name: ""`, at + `name: "" must be the name of a file in the folder of plugins, without slashes ` +
			`and spaces`},
		{"name: ecr", "name: ../ecr", at + `name: "../ecr" must be the name of a file in the folder of plugins, ` +
			`without slashes and spaces`},
		{"name: ecr", "name: ..", at + "name: "},
		{"name: ecr", "name: .", at + "name: "},
		{"name: ecr", "name: a b", at + "name: "},
		{`["*.dkr.ecr.*.amazonaws.com", "registry.io:8080/path"]`, "[]", at + "matchImages: must have at least one entry"},
		{`["*.dkr.ecr.*.amazonaws.com", "registry.io:8080/path"]`, "gcr.io", at + "matchImages: must be a list"},
		{"registry.io:8080/path", "registry.io/*", at + `matchImages[1]: "registry.io/*"` + pattern},
		{"registry.io:8080/path", "https://gcr.io", at + `matchImages[1]: "https://gcr.io"` + pattern},
		{"defaultCacheDuration: 12h", "", at + "defaultCacheDuration: must be set, for example to 10m; 0s keeps no " +
			"credentials"},
		{"12h", "-1s", at + "defaultCacheDuration: -1s must be at least 0s"},
		{"12h", "12", at + "defaultCacheDuration: 12 must be a duration, like 10m or 12h"},
		{"12h", "half a day", at + "defaultCacheDuration: half a day must be a duration, like 10m or 12h"},
		{"apiVersion: credentialprovider.kubelet.k8s.io/v1", "", at +
			`apiVersion: "" must be "credentialprovider.kubelet.k8s.io/v1"`},
		{"credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", at +
			`apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1" must be "credentialprovider.kubelet.k8s.io/v1"`},
		{"[get-credentials]", `["a\0b"]`, at + "args[0]: must not contain a NUL character"},
		{"[get-credentials]", "[7]", at + "args[0]: must be a text; put it in quotes if it looks like something else"},
		{"AWS_PROFILE", `""`, at + `env[0].name: "" must be the name of a variable, without =`},
		{"AWS_PROFILE", "A=B", at + `env[0].name: "A=B" must be the name of a variable, without =`},
		{"value: example", `value: "\0"`, at + "env[0].value: must not contain a NUL character"},
		{"serviceAccountTokenAudience: registry", "", at +
			"tokenAttributes.serviceAccountTokenAudience: must be set: for whom the tokens are"},
		{"cacheType: Token", "", at + `tokenAttributes.cacheType: "" must be Token or ServiceAccount`},
		{"cacheType: Token", "cacheType: token", at + `tokenAttributes.cacheType: "token" must be Token or ServiceAccount`},
		{"requireServiceAccount: true", "", at + "tokenAttributes.requireServiceAccount: must be true or false"},
		{"requireServiceAccount: true", `requireServiceAccount: "yes"`, at +
			"tokenAttributes.requireServiceAccount: yes must be true or false"},
		{"requireServiceAccount: true", "requireServiceAccount: false", at +
			"tokenAttributes.requiredServiceAccountAnnotationKeys: must be empty unless requireServiceAccount is true"},
		{"[example.com/role]", "[example.com/role, example.com/role]", at +
			`tokenAttributes.requiredServiceAccountAnnotationKeys[1]: "example.com/role" must stand only once`},
		{"[example.com/role]", "[a/b/c]", at + `tokenAttributes.requiredServiceAccountAnnotationKeys[0]: "a/b/c" must ` +
			`be the key of an annotation, like example.com/name`},
		{"plain]", "example.com/role]", at + `tokenAttributes.optionalServiceAccountAnnotationKeys[1]: ` +
			`"example.com/role" must not stand in requiredServiceAccountAnnotationKeys too`},
		{"plain]", "plain, plain]", at +
			`tokenAttributes.optionalServiceAccountAnnotationKeys[2]: "plain" must stand only once`},
		{"    cacheType: Token\n    requireServiceAccount: true\n", "", at +
			`tokenAttributes.cacheType: "" must be Token or ServiceAccount` + "\n" + at +
			"tokenAttributes.requireServiceAccount: must be true or false"},
	} {
		text := head + good
		if !strings.Contains(text, row.old) {
			t.Fatalf("%q is not in the file", row.old)
		}
		_, wrong := decode([]byte(strings.Replace(text, row.old, row.new, 1)))
		got := strings.Join(wrong, "\n")
		begins := strings.HasSuffix(row.want, ": ")
		if got != row.want && (!begins || !strings.HasPrefix(got, row.want)) {
			t.Errorf("%q for %q: %q, want %q", row.new, row.old, got, row.want)
		}
	}
}

// The flags need each other; a folder is read file by file, in the order of the names.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	called := func(name string) string { return head + strings.Replace(good, "ecr", name, 1) }
	one := write("one.yaml", called("one"))
	write("several/20.yml", called("b"))
	write("several/10.json", `{"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": [{"name": "c", "matchImages": ["x"], "defaultCacheDuration": "1m",
		"apiVersion": "credentialprovider.kubelet.k8s.io/v1"}]}`)
	write("several/30.yaml", called("a"))
	write("several/README", "no provider")
	write("several/deeper/40.yaml", "no provider either")
	write("empty/README", "")
	first := write("twice/1.yaml", called("a"))
	second := write("twice/2.yaml", called("a"))
	within := write("within.yaml", called("a")+good+strings.Replace(good, "ecr", "a", 1))
	bad := write("bad/1.yaml", strings.Replace(called(`""`), "12h", "-1s", 1))
	worse := write("bad/2.yaml", "{}")
	config := "--image-credential-provider-config: "
	for _, row := range []struct{ config, binDir, want, names string }{
		{"", "", "", ""},
		{one, "", config + "needs --image-credential-provider-bin-dir", ""},
		{"", "/bin", "--image-credential-provider-bin-dir: needs --image-credential-provider-config", ""},
		{one, "bin", `--image-credential-provider-bin-dir: "bin" must be an absolute path`, ""},
		{one, "/not/there/yet", "", "one"},
		{dir + "/several", "/bin", "", "c b a"},
		{dir + "/none", "/bin", config + "stat " + dir + "/none: no such file or directory", ""},
		{dir + "/empty", "/bin", config + dir + "/empty has no file whose name ends with .json, .yaml or .yml", ""},
		{dir + "/twice", "/bin", config + second + `: providers[0].name: "a" is the name of providers[0].name in ` + first +
			" too, each provider must have its own", ""},
		{within, "/bin", config + within + `: providers[2].name: "a" is the name of providers[0].name in ` + within +
			" too, each provider must have its own", ""},
		{dir + "/bad", "/bin", config + bad + `: providers[0].name: "" must be the name of a file in the folder of ` +
			"plugins, without slashes and spaces\n" + config + bad +
			": providers[0].defaultCacheDuration: -1s must be at least 0s\n" + config + worse +
			`: apiVersion: "", it must be "kubelet.config.k8s.io/v1"`, ""},
	} {
		s := Settings{Config: row.config, BinDir: row.binDir}
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%+v: %q, want %q", s, got, row.want)
		}
		read, _ := s.read()
		var names []string
		for _, p := range read.providers {
			names = append(names, p.Name)
		}
		if strings.Join(names, " ") != row.names || (read.hash != "") != (row.names != "") {
			t.Errorf("%+v: providers %v, hash %q", s, names, read.hash)
		}
	}
}

// The hash follows from the content alone.
func TestHash(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, text := range []string{head + good, head + good + "\n"} {
		file := filepath.Join(dir, "a.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := Settings{Config: file, BinDir: "/bin"}
			read, err := s.read()
			if err != nil || !strings.HasPrefix(read.hash, "sha256:") || len(read.hash) != 7+64 {
				t.Fatalf("hash %q, %v", read.hash, err)
			}
			seen[read.hash] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("two files have the hashes %v", seen)
	}
}
