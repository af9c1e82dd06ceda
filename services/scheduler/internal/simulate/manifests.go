package simulate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// document is one object of a manifest.
type document struct {
	path   string // for messages: the file, and the how-manieth in it
	object runtime.Object
	// unknown is the kind of an object that this program does not know.
	unknown string
}

// manifests reads a file, standard input as "-", or the files of a folder in the order of their names.
func manifests(name string, stdin io.Reader) ([]document, error) {
	if name == "-" {
		return parse("standard input", stdin)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	files := []string{name}
	if info.IsDir() {
		files = nil
		for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
			found, err := filepath.Glob(filepath.Join(name, pattern))
			if err != nil {
				return nil, fmt.Errorf("--filename: %w", err)
			}
			files = append(files, found...)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("--filename: folder %s has no file that ends in .yaml, .yml or .json", name)
		}
		slices.Sort(files)
	}
	var out []document
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--filename: %w", err)
		}
		documents, err := parse(file, bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		out = append(out, documents...)
	}
	return out, nil
}

// parse reads the documents of a file, YAML or JSON. Unknown fields are refused.
func parse(file string, in io.Reader) ([]document, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(in))
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var out []document
	for i := 1; ; i++ {
		data, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		path := fmt.Sprintf("--filename: %s[%d]", file, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if empty(data) {
			continue
		}
		found, err := decode(strict, path, data)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
}

// empty reports whether a document has nothing but comments.
func empty(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

func decode(strict runtime.Decoder, path string, data []byte) ([]document, error) {
	object, kind, err := strict.Decode(data, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		return []document{{path: path, unknown: kind.Kind}}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	list, ok := object.(*corev1.List)
	if !ok {
		return []document{{path: path, object: object}}, nil
	}
	var out []document
	for i, item := range list.Items {
		found, err := decode(strict, fmt.Sprintf("%s.items[%d]", path, i), item.Raw)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// name names the object of a document.
func (d *document) name() string {
	if d.object == nil {
		return d.unknown
	}
	kind := d.object.GetObjectKind().GroupVersionKind().Kind
	if m, err := meta.Accessor(d.object); err == nil {
		return kind + " " + m.GetName()
	}
	return kind
}
