// Package podenv computes what a container is started with: its environment, its command and its arguments. It is pure:
// whoever calls it has gathered the ConfigMaps, Secrets and Services before.
//
// An error of Resolve is one clear sentence about the container. The container then waits with reason
// CreateContainerConfigError and this sentence as message, and is tried again when an object changes.
package podenv

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/services/nodeagent/internal/downward"
)

// Object is the outcome of looking one ConfigMap or Secret up. Exactly one of the two is set; an Err that is a not-found
// error of the API counts as "does not exist" for optional references, any other one never does.
type Object[T any] struct {
	Value *T
	Err   error
}

// Input is all that the environment of one container depends on. Nothing in it is changed.
type Input struct {
	downward.View
	Container *corev1.Container
	// ConfigMaps and Secrets hold, by name, each object of the Pod's namespace that References names.
	ConfigMaps map[string]Object[corev1.ConfigMap]
	Secrets    map[string]Object[corev1.Secret]
	// Services holds those of the Pod's namespace and the Service "kubernetes" of "default".
	Services []*corev1.Service
	// Allocatable is the node's, the default of limits.
	Allocatable corev1.ResourceList
}

// Variable is one entry of the environment.
type Variable struct{ Name, Value string }

// Skipped names the keys of one envFrom source that cannot be names of variables. They deserve a Warning event with reason
// InvalidEnvironmentVariableNames on the Pod.
type Skipped struct {
	Kind, Name string
	Keys       []string
}

// Message is the text of the event.
func (s Skipped) Message(namespace string) string {
	return fmt.Sprintf("Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.",
		strings.Join(s.Keys, ", "), s.Kind, namespace, s.Name)
}

// Result is what the container is started with. Env has each name once.
type Result struct {
	Env           []Variable
	Command, Args []string
	Skipped       []Skipped
}

// Lookup finds a variable of the result by name, as Expand needs it.
func (r Result) Lookup(name string) (string, bool) {
	for _, variable := range r.Env {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}

// Resolve computes environment, command and arguments. Service variables are weakest, then envFrom in order, then env in
// order; a value may refer to all that was set before it.
func Resolve(in Input) (Result, error) {
	env := environment{values: serviceVariables(in.Pod, in.Services)}
	env.order = sortedKeys(env.values)
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
	result.Command = env.expandEach(in.Container.Command)
	result.Args = env.expandEach(in.Container.Args)
	return result, nil
}

// environment keeps the values and the order in which they were first set.
type environment struct {
	values map[string]string
	order  []string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *environment) lookup(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

func (e *environment) expandEach(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, Expand(text, e.lookup))
	}
	return out
}

// addSource adds all keys of a ConfigMap or Secret and returns those that cannot be names of variables.
func (e *environment) addSource(in Input, from *corev1.EnvFromSource) ([]Skipped, error) {
	kind, name := "ConfigMap", ""
	var data map[string]string
	var err error
	switch {
	case from.ConfigMapRef != nil:
		name = from.ConfigMapRef.Name
		data, err = in.configMap(name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		kind, name = "Secret", from.SecretRef.Name
		data, err = in.secret(name, from.SecretRef.Optional)
	}
	if err != nil {
		return nil, err
	}
	skipped := Skipped{Kind: kind, Name: name}
	for _, key := range sortedKeys(data) {
		variable := from.Prefix + key
		if len(validation.IsRelaxedEnvVarName(variable)) > 0 {
			skipped.Keys = append(skipped.Keys, variable)
			continue
		}
		e.set(variable, data[key])
	}
	if len(skipped.Keys) == 0 {
		return nil, nil
	}
	return []Skipped{skipped}, nil
}

// addVariable adds one entry of env. An optional key that is not there leaves the variable unset.
func (e *environment) addVariable(in Input, variable *corev1.EnvVar) error {
	if variable.Value != "" || variable.ValueFrom == nil {
		e.set(variable.Name, Expand(variable.Value, e.lookup))
		return nil
	}
	value, ok, err := in.valueFrom(variable.ValueFrom)
	if err != nil {
		return err
	}
	if ok {
		e.set(variable.Name, value)
	}
	return nil
}
