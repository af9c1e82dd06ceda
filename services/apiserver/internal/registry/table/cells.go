// Package table holds the texts that the columns of several resources show.
//
//keelson:decision
package table

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What a cell shows when there is nothing to show, when a field has no value, and when the value is not known.
const (
	None    = "<none>"
	Unset   = "<unset>"
	Unknown = "<unknown>"
)

// Joined shows a list joined by separator, or <none>.
func Joined(items []string, separator string) string {
	if len(items) == 0 {
		return None
	}
	return strings.Join(items, separator)
}

// First shows the first items of a list, joined by commas, and counts the rest; none is shown for an empty list.
func First(limit int, items []string, none string) string {
	switch {
	case len(items) == 0:
		return none
	case len(items) <= limit:
		return strings.Join(items, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(items[:limit], ","), len(items)-limit)
}

// Labels shows a label map as key=value pairs in key order, or <none>.
func Labels(set map[string]string) string {
	if len(set) == 0 {
		return None
	}
	return labels.Set(set).String()
}

// Selector shows a label selector in its string form; one that cannot be parsed is shown as <error>.
func Selector(selector *metav1.LabelSelector) string {
	return metav1.FormatLabelSelector(selector)
}

// ContainerNames shows the names of the containers, joined by commas.
func ContainerNames(containers []corev1.Container) string {
	names := make([]string, 0, len(containers))
	for i := range containers {
		names = append(names, containers[i].Name)
	}
	return strings.Join(names, ",")
}

// ContainerImages shows the images of the containers, joined by commas.
func ContainerImages(containers []corev1.Container) string {
	images := make([]string, 0, len(containers))
	for i := range containers {
		images = append(images, containers[i].Image)
	}
	return strings.Join(images, ",")
}
