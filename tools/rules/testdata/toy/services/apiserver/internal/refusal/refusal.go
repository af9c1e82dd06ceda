// Package refusal writes past package negotiated.
package refusal

import "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

// Is is true.
const Is = responsewriters.Is
