// Package projection turns API objects into the files of a volume. configMap, secret, downwardAPI and projected
// volumes use it.
package projection

import (
	"fmt"
	"io/fs"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/volume/atomicdir"
)

// DefaultMode is the mode of files for which none is specified.
const DefaultMode int32 = 0o644

// Keys defines how the keys of one object become files.
type Keys struct {
	// Items choose keys and their paths; without any, each key is a file of its name.
	Items []corev1.KeyToPath
	// DefaultMode is the mode of items without one.
	DefaultMode int32
	// Optional allows keys to be missing.
	Optional bool
	// What names the object in an error, for example "configmap references non-existent config key".
	What string
}

// Files returns the files of an object's data.
func (k Keys) Files(data map[string][]byte) (atomicdir.Files, error) {
	files := atomicdir.Files{}
	if len(k.Items) == 0 {
		for key, value := range data {
			files[key] = atomicdir.File{Data: value, Mode: fs.FileMode(k.DefaultMode)}
		}
		return files, nil
	}
	for _, item := range k.Items {
		value, ok := data[item.Key]
		if !ok {
			if k.Optional {
				continue
			}
			return nil, fmt.Errorf("%s: %s", k.What, item.Key)
		}
		files[item.Path] = atomicdir.File{Data: value, Mode: fs.FileMode(ptr.Deref(item.Mode, k.DefaultMode))}
	}
	return files, nil
}

// ConfigMapData returns all keys of a ConfigMap, textual and binary.
func ConfigMapData(object *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, value := range object.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, object.BinaryData)
	return data
}

// Downward returns the files of downward API items.
func Downward(view downward.View, items []corev1.DownwardAPIVolumeFile, defaultMode int32,
	allocatable corev1.ResourceList) (atomicdir.Files, error) {
	files, size := atomicdir.Files{}, 0
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = view.Field(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = view.Resource(nil, item.ResourceFieldRef, allocatable)
		default:
			err = fmt.Errorf("item needs fieldRef or resourceFieldRef")
		}
		if err != nil {
			return nil, fmt.Errorf("downward API file %s: %w", item.Path, err)
		}
		if size += len(value); size > atomicdir.MaxSize {
			return nil, fmt.Errorf("downward API file %s: with it the files have more than %d bytes together",
				item.Path, atomicdir.MaxSize)
		}
		files[item.Path] = atomicdir.File{Data: []byte(value), Mode: fs.FileMode(ptr.Deref(item.Mode, defaultMode))}
	}
	return files, nil
}

// SoleUser returns the user that every container of the Pod runs as, or nil if they differ or leave it to the image.
func SoleUser(pod *corev1.Pod) *int64 {
	var sole *int64
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			user := runAsUser(pod, &list[i])
			if user == nil || (sole != nil && *sole != *user) {
				return nil
			}
			sole = user
		}
	}
	return sole
}

func runAsUser(pod *corev1.Pod, container *corev1.Container) *int64 {
	if container.SecurityContext != nil && container.SecurityContext.RunAsUser != nil {
		return container.SecurityContext.RunAsUser
	}
	if pod.Spec.SecurityContext != nil {
		return pod.Spec.SecurityContext.RunAsUser
	}
	return nil
}
