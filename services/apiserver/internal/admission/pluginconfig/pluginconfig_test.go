package pluginconfig_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
)

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"

// checks are those of two plugins, of which one likes nothing.
var checks = map[string]func([]byte) error{
	"Easy": func([]byte) error { return nil }, "Hard": func([]byte) error { return errors.New("it is too much") },
}

func file(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A plugin gets what stands in the file, or in the other file that it names, beside the first or anywhere.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	absolute := file(t, t.TempDir(), "easy.yaml", "elsewhere")
	file(t, dir, "easy.yaml", "beside")
	for name, row := range map[string]struct{ content, want string }{
		"inline":   {head + "plugins: [{name: Easy, configuration: {a: 1}}]", `{"a":1}`},
		"beside":   {head + "plugins: [{name: Easy, path: easy.yaml}]", "beside"},
		"absolute": {head + "plugins: [{name: Easy, path: " + absolute + "}]", "elsewhere"},
		"neither":  {head + "plugins: [{name: Easy}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plugins, err := pluginconfig.Read(file(t, dir, "config.yaml", row.content), checks)
			if err != nil {
				t.Fatal(err)
			}
			reader, err := plugins.ConfigFor("Easy")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(reader); err != nil || string(got) != row.want {
				t.Errorf("%q, %v, want %q", got, err, row.want)
			}
		})
	}
}

// A plugin that nothing is said about gets no reader, which is how the library tells it.
func TestUnconfigured(t *testing.T) {
	plugins, err := pluginconfig.Read("", checks)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]pluginconfig.Plugins{"no file": plugins, "another": {"Hard": nil}} {
		if reader, err := p.ConfigFor("Easy"); reader != nil || err != nil {
			t.Errorf("%s: %v, %v", name, reader, err)
		}
	}
}

// What is wrong is one line that begins with its path.
func TestWrong(t *testing.T) {
	dir := t.TempDir()
	for name, row := range map[string]struct{ content, want string }{
		"empty": {"", `apiVersion: "", it must be "apiserver.config.k8s.io/v1"`},
		"another kind": {strings.Replace(head, "Admission", "Tracing", 1),
			`kind: "TracingConfiguration", it must be "AdmissionConfiguration"`},
		"an old group": {strings.Replace(head, "apiserver.config.k8s.io/v1", "v1", 1),
			`apiVersion: "v1", it must be "apiserver.config.k8s.io/v1"`},
		"no YAML":       {"\t", "is no YAML: "},
		"a wrong field": {head + "plugin: []", "plugin: AdmissionConfiguration has no such field"},
		"a wrong field of a plugin": {head + "plugins: [{name: Easy, config: {}}]",
			"plugins[0].config: AdmissionConfiguration has no such field"},
		"an unknown plugin": {head + "plugins: [{name: Easy}, {name: Eazy}]",
			`plugins[1].name: "Eazy" takes no configuration, these do: Easy, Hard`},
		"a plugin twice": {head + "plugins: [{name: Easy}, {name: Easy}]", `plugins[1].name: "Easy" stands twice`},
		"two sources": {head + "plugins: [{name: Easy, path: a, configuration: {}}]",
			`plugins[0]: path and configuration are given, there must be one of them`},
		"a file that is missing": {head + "plugins: [{name: Easy, path: none}]",
			"plugins[0].path: open " + filepath.Join(dir, "none")},
		"a wrong configuration": {head + "plugins: [{name: Easy}, {name: Hard, configuration: {}}]",
			"plugins[1].configuration: it is too much"},
		"a wrong file": {head + "plugins: [{name: Hard, path: config.yaml}]", "plugins[0].path: it is too much"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pluginconfig.Read(file(t, dir, "config.yaml", row.content), checks)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one line that begins with %q", err, row.want)
			}
		})
	}
	if _, err := pluginconfig.Read(filepath.Join(dir, "missing"), checks); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
