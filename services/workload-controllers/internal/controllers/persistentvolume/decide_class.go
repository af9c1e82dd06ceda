package persistentvolume

import (
	storagev1 "k8s.io/api/storage/v1"
)

// defaultClass returns the class of claims that name none: of several defaults the newest, of those the first by name.
// nil: no class is the default.
func defaultClass(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var chosen *storagev1.StorageClass
	for _, class := range classes {
		if isDefault(class) && (chosen == nil || isNewer(class, chosen)) {
			chosen = class
		}
	}
	return chosen
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[annotationDefault] == "true" || class.Annotations[annotationDefaultV1] == "true"
}

func isNewer(class, than *storagev1.StorageClass) bool {
	made, before := class.CreationTimestamp, than.CreationTimestamp
	return made.After(before.Time) || made.Equal(&before) && class.Name < than.Name
}
