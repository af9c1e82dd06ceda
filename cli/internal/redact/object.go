package redact

import "strings"

// keptDomains are those whose annotations the mesh and its tools write themselves.
var keptDomains = []string{"kubernetes.io", "k8s.io", "keelson.dev"}

// lastApplied repeats the whole object as its user wrote it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Object removes from an object, in place, the fields in which users keep credentials:
//
//   - the values of environment variables, commands, arguments and HTTP headers of containers and their probes;
//   - the values of data, stringData and binaryData, and of the parameters that volumes and classes hand to drivers;
//   - annotations outside of the domains of Kubernetes and Keelson, and managedFields;
//   - what Text finds in any other string.
//
// Names of fields, and how many values there were, stay.
func Object(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	fields(object)
}

// fields redacts the fields of an object or of a part of it.
func fields(part map[string]any) {
	for name, value := range part {
		switch {
		case secretValues[name] && emptied(value):
		case name == "annotations":
			annotations(value)
		case name == "env" || name == "httpHeaders":
			valuesOf(value)
		default:
			part[name] = cleaned(value)
		}
	}
}

// secretValues names the fields of which no value is kept, in whatever kind they are.
var secretValues = map[string]bool{
	"command": true, "args": true, // of containers, hooks and probes
	"data": true, "stringData": true, "binaryData": true,
	"parameters": true, "volumeAttributes": true, "options": true, "attributes": true, // of drivers
}

// emptied removes the values of a map or of a list, and reports whether value is one of these.
func emptied(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = Removed
		}
	case []any:
		for i := range value {
			value[i] = Removed
		}
	default:
		return false
	}
	return true
}

// annotations redacts those that users write.
func annotations(value any) {
	all, _ := value.(map[string]any)
	for name, text := range all {
		switch said, isText := text.(string); {
		case name == lastApplied:
			delete(all, name)
		case isText && ofMesh(name):
			all[name] = Text(said)
		default:
			all[name] = Removed
		}
	}
}

// ofMesh reports whether the mesh, or a tool of the field, writes the annotation.
func ofMesh(name string) bool {
	domain, _, hasDomain := strings.Cut(name, "/")
	if !hasDomain {
		return false
	}
	for _, kept := range keptDomains {
		if domain == kept || strings.HasSuffix(domain, "."+kept) {
			return true
		}
	}
	return false
}

// valuesOf removes the field value of every element of a list.
func valuesOf(list any) {
	elements, _ := list.([]any)
	for _, element := range elements {
		if part, ok := element.(map[string]any); ok {
			if _, has := part["value"]; has {
				part["value"] = Removed
			}
			fields(part)
		}
	}
}

// cleaned returns a value with the strings in it redacted.
func cleaned(value any) any {
	switch value := value.(type) {
	case string:
		return Text(value)
	case map[string]any:
		fields(value)
	case []any:
		for i := range value {
			value[i] = cleaned(value[i])
		}
	}
	return value
}
