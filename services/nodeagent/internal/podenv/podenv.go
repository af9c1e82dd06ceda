// Package podenv computes with what a container is started: its environment, its command and its arguments. It is pure:
// the caller gathers the ConfigMaps, Secrets, files and Services before.
//
// An error of Resolve is one clear sentence about the container. The container then waits with reason
// CreateContainerConfigError and this sentence as message, and is tried again when an object changes.
//
//keelson:decision
package podenv

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/services/nodeagent/internal/downward"
)

// Object is the result of looking up one ConfigMap, Secret or file. Exactly one of the two is set; an Err that is a
// not-found error of the API, or fs.ErrNotExist of a file, counts as "does not exist" for optional references, any
// other error never does.
type Object[T any] struct {
	Value *T
	Err   error
}

// Input is all that the environment of one container depends on. Resolve does not change it.
type Input struct {
	downward.View
	Container *corev1.Container
	// ConfigMaps and Secrets hold, by name, each object of the Pod's namespace that References names.
	ConfigMaps map[string]Object[corev1.ConfigMap]
	Secrets    map[string]Object[corev1.Secret]
	// Files holds the text of each file that Files names.
	Files map[File]Object[string]
	// Services holds the Services of the Pod's namespace and the Service "kubernetes" of "default".
	Services []*corev1.Service
	// Allocatable is the node's allocatable resources, the default of limits.
	Allocatable corev1.ResourceList
}

// Variable is one entry of the environment.
type Variable struct{ Name, Value string }

// Skipped names the keys of one envFrom source that cannot be names of variables. The caller should record a
// Warning event with reason InvalidEnvironmentVariableNames on the Pod.
type Skipped struct {
	Kind, Name string
	Keys       []string
}

// Message returns the text of the event.
func (s Skipped) Message(namespace string) string {
	return fmt.Sprintf("Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid "+
		"environment variable names.",
		strings.Join(s.Keys, ", "), s.Kind, namespace, s.Name)
}

// Result is the input of a container's start. Env has each name once.
type Result struct {
	Env           []Variable
	Command, Args []string
	Skipped       []Skipped
}

// Lookup finds a variable of the result by name, as Expand requires.
func (r Result) Lookup(name string) (string, bool) {
	for _, variable := range r.Env {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}

// MaxSize bounds the bytes of environment, command and arguments of one container together, counted as the kernel
// does: each text with the byte that ends it, a variable with its name. Every value that is built counts, including
// one that a later value replaces, so that the work is bounded too.
const MaxSize = 1 << 20

// Resolve computes environment, command and arguments. Service variables are weakest, then envFrom in order, then env
// in order; a value may refer to all that was set before it. Nothing beyond MaxSize is built.
func Resolve(in Input) (Result, error) {
	env := environment{container: in.Container.Name, values: map[string]string{}, left: MaxSize}
	services := serviceVariables(in.Pod, in.Services)
	for _, name := range sortedKeys(services) {
		if err := env.set(name, services[name]); err != nil {
			return Result{}, err
		}
	}
	var result Result
	for i := range in.Container.EnvFrom {
		skipped, err := env.addSource(in, &in.Container.EnvFrom[i])
		if err != nil {
			return Result{}, err
		}
		result.Skipped = append(result.Skipped, skipped...)
	}
	for i := range in.Container.Env {
		if err := env.addVariable(in, &in.Container.Env[i]); err != nil {
			return Result{}, err
		}
	}
	for _, name := range env.order {
		result.Env = append(result.Env, Variable{Name: name, Value: env.values[name]})
	}
	var err error
	if result.Command, err = env.expandEach("command", in.Container.Command); err != nil {
		return Result{}, err
	}
	if result.Args, err = env.expandEach("args", in.Container.Args); err != nil {
		return Result{}, err
	}
	return result, nil
}

// environment keeps the values and the order in which they were first set.
type environment struct {
	container string
	values    map[string]string
	order     []string
	// left is what remains of MaxSize.
	left int
}

// set adds a variable; its name, the equals sign and the byte at the end count too.
func (e *environment) set(name, value string) error {
	if !e.take(len(name) + len(value) + 2) {
		return e.tooLarge("variable " + name)
	}
	if _, ok := e.values[name]; !ok {
		e.order = append(e.order, name)
	}
	e.values[name] = value
	return nil
}

// take counts bytes and reports whether MaxSize has room for them.
func (e *environment) take(bytes int) bool {
	if bytes > e.left {
		return false
	}
	e.left -= bytes
	return true
}

func (e *environment) tooLarge(what string) error {
	return fmt.Errorf("container %s: with %s, environment, command and args would have more than %d bytes together",
		e.container, what, MaxSize)
}

func (e *environment) lookup(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

func (e *environment) expandEach(field string, texts []string) ([]string, error) {
	var out []string
	for i, text := range texts {
		expanded, err := Expand(text, e.left, e.lookup)
		if err != nil || !e.take(len(expanded)+1) {
			return nil, e.tooLarge(fmt.Sprintf("%s[%d]", field, i))
		}
		out = append(out, expanded)
	}
	return out, nil
}

// addSource adds all keys of a ConfigMap or Secret and returns those that cannot be names of variables.
func (e *environment) addSource(in Input, from *corev1.EnvFromSource) ([]Skipped, error) {
	switch {
	case from.ConfigMapRef != nil:
		data, err := in.configMap(from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		if err != nil {
			return nil, err
		}
		return addKeys(e, data, from.Prefix, Skipped{Kind: "ConfigMap", Name: from.ConfigMapRef.Name})
	case from.SecretRef != nil:
		data, err := in.secret(from.SecretRef.Name, from.SecretRef.Optional)
		if err != nil {
			return nil, err
		}
		return addKeys(e, data, from.Prefix, Skipped{Kind: "Secret", Name: from.SecretRef.Name})
	}
	return nil, nil
}

func addKeys[V string | []byte](e *environment, data map[string]V, prefix string, skipped Skipped) ([]Skipped, error) {
	for _, key := range sortedKeys(data) {
		variable := prefix + key
		if len(validation.IsRelaxedEnvVarName(variable)) > 0 {
			skipped.Keys = append(skipped.Keys, variable)
			continue
		}
		if err := e.set(variable, string(data[key])); err != nil {
			return nil, err
		}
	}
	if len(skipped.Keys) == 0 {
		return nil, nil
	}
	return []Skipped{skipped}, nil
}

// addVariable adds one entry of env. A missing optional key leaves the variable unset.
func (e *environment) addVariable(in Input, variable *corev1.EnvVar) error {
	if variable.Value != "" || variable.ValueFrom == nil {
		value, err := Expand(variable.Value, e.left, e.lookup)
		if err != nil {
			return e.tooLarge("variable " + variable.Name)
		}
		return e.set(variable.Name, value)
	}
	value, ok, err := in.valueFrom(variable.ValueFrom)
	if err != nil || !ok {
		return err
	}
	return e.set(variable.Name, value)
}
