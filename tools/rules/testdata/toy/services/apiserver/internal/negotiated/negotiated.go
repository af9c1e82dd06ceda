// Package negotiated is the one that may call the writers.
package negotiated

import "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

// Is is true.
const Is = responsewriters.Is
