package staticpods

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// decoder reads YAML, which includes JSON. It reports unknown and duplicate fields, and reads the rest.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
}()

// manifest is a Pod as it was written.
type manifest struct {
	pod *corev1.Pod
	// content is the same as JSON, without comments, order and indentation.
	content []byte
	// remark names fields that are not read, like the API's warnings; empty if all are read.
	remark string
}

// parse reads the only Pod in a manifest.
func parse(data []byte) (manifest, error) {
	document, content, err := onlyDocument(data)
	if err != nil {
		return manifest{}, err
	}
	out := manifest{content: content}
	object, kind, err := decoder.Decode(document, nil, nil)
	if runtime.IsStrictDecodingError(err) {
		out.remark, err = oneLine(err.Error()), nil
	}
	switch {
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return manifest{}, errors.New("apiVersion and kind must be v1 and Pod, but one of them is missing")
	case err != nil && !runtime.IsNotRegisteredError(err):
		return manifest{}, fmt.Errorf("it is no manifest: %s", oneLine(err.Error()))
	}
	var is bool
	if out.pod, is = object.(*corev1.Pod); !is {
		return manifest{}, fmt.Errorf("apiVersion and kind must be v1 and Pod, not %s and %s",
			oneLine(kind.GroupVersion().String()), oneLine(kind.Kind))
	}
	return out, nil
}

// onlyDocument returns the only non-empty document of a manifest, as written and as JSON.
func onlyDocument(data []byte) (found, content []byte, err error) {
	// The reader loses a last line without an end that fills its buffer.
	ended := append(bytes.Clone(data), '\n')
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(ended))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("it is no manifest: %s", oneLine(err.Error()))
		}
		converted, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, nil, fmt.Errorf("it is no manifest: %s", oneLine(err.Error()))
		}
		if bytes.Equal(converted, []byte("null")) {
			continue
		}
		if found != nil {
			return nil, nil, errors.New("it holds several documents, but a manifest holds one Pod")
		}
		found, content = document, converted
	}
	if found == nil {
		return nil, nil, errors.New("it is empty")
	}
	return found, content, nil
}

// longest bounds a message about one manifest: it goes into a log and an Event.
const longest = 500

// oneLine makes a message one bounded line.
func oneLine(message string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")
	if len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "..."
	}
	return line
}
