// Package bind breaks the rules about imports.
package bind

import (
	"k8s.io/apiserver"
	"k8s.io/kubernetes"
	"keelson.dev/services/podgc"
)

// All is true.
const All = apiserver.Is && kubernetes.Is && podgc.Is
