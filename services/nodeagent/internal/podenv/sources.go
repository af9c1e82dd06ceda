package podenv

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// valueFrom returns the value of one valueFrom; ok is false when an optional reference has no value.
func (in Input) valueFrom(from *corev1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = in.Field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = in.Resource(in.Container, from.ResourceFieldRef, in.Allocatable)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := in.configMap(ref.Name, ref.Optional)
		return key(in, data, "ConfigMap", ref.Name, ref.Key, ref.Optional, err)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := in.secret(ref.Name, ref.Optional)
		return key(in, data, "Secret", ref.Name, ref.Key, ref.Optional, err)
	case from.FileKeyRef != nil:
		return in.fileKey(from.FileKeyRef)
	}
	return "", false, errors.New(
		"unsupported valueFrom: use fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef")
}

func key[V string | []byte](in Input, data map[string]V, kind, name, key string, optional *bool, err error) (string,
	bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := data[key]
	if !ok && !ptr.Deref(optional, false) {
		return "", false, fmt.Errorf("couldn't find key %v in %s %v/%v", key, kind, in.Pod.Namespace, name)
	}
	return string(value), ok, nil
}

func (in Input) configMap(name string, optional *bool) (map[string]string, error) {
	found, err := pick(in.ConfigMaps, "configmap", name, optional)
	if found == nil {
		return nil, err
	}
	return found.Data, nil
}

func (in Input) secret(name string, optional *bool) (map[string][]byte, error) {
	found, err := pick(in.Secrets, "secret", name, optional)
	if found == nil {
		return nil, err
	}
	return found.Data, nil
}

// pick returns the object, or nil without error when it is optional and does not exist.
func pick[T any](objects map[string]Object[T], resource, name string, optional *bool) (*T, error) {
	object := objects[name]
	if object.Value != nil {
		return object.Value, nil
	}
	err := object.Err
	if err == nil {
		err = apierrors.NewNotFound(corev1.Resource(resource), name)
	}
	if ptr.Deref(optional, false) && apierrors.IsNotFound(err) {
		return nil, nil
	}
	return nil, err
}
