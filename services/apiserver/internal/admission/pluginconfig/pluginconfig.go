// Package pluginconfig reads the file that configures admission plugins: an AdmissionConfiguration of
// apiserver.config.k8s.io/v1, as kube-apiserver takes it.
package pluginconfig

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"keelson.dev/kit/configfile"
)

var kind = configfile.Kind{APIVersion: apiserverv1.SchemeGroupVersion.String(), Name: "AdmissionConfiguration"}

// Plugins are the configurations of plugins by their names. It implements the ConfigProvider of k8s.io/apiserver.
type Plugins map[string][]byte

// ConfigFor implements ConfigProvider. A plugin that the file says nothing about gets nil.
func (p Plugins) ConfigFor(name string) (io.Reader, error) {
	if data, ok := p[name]; ok {
		return bytes.NewReader(data), nil
	}
	return nil, nil
}

// Content is what a plugin that is made gets to read; nothing where it gets nil.
func Content(from io.Reader) ([]byte, error) {
	if from == nil {
		return nil, nil
	}
	return io.ReadAll(from)
}

// Read returns what the file says; without a path that is nothing. The plugins that may be configured are those in
// checks, which say what is wrong with a configuration. An error names the path in the file.
func Read(path string, checks map[string]func([]byte) error) (Plugins, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := &apiserverv1.AdmissionConfiguration{}
	if err := kind.Decode(data, config); err != nil {
		return nil, err
	}
	plugins := Plugins{}
	for i, plugin := range config.Plugins {
		if err := plugins.add(plugin, checks, field.NewPath("plugins").Index(i), filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	return plugins, nil
}

// add takes in one plugin of a file that lies in dir.
func (p Plugins) add(plugin apiserverv1.AdmissionPluginConfiguration, checks map[string]func([]byte) error,
	at *field.Path, dir string) error {
	check, ok := checks[plugin.Name]
	if !ok {
		return fmt.Errorf("%s: %q takes no configuration, these do: %s", at.Child("name"), plugin.Name,
			strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
	}
	if _, twice := p[plugin.Name]; twice {
		return fmt.Errorf("%s: %q stands twice", at.Child("name"), plugin.Name)
	}
	var data []byte
	switch inline, file := plugin.Configuration, plugin.Path; {
	case inline != nil && file != "":
		return fmt.Errorf("%s: path and configuration are given, there must be one of them", at)
	case inline != nil:
		at, data = at.Child("configuration"), inline.Raw
	case file != "":
		at = at.Child("path")
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if err := check(data); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	p[plugin.Name] = data
	return nil
}
