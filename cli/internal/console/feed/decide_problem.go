package feed

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// describe says why what was to be listed is not known; empty without an error, and for one after which the
// reflector begins again at once.
func describe(err error, what string) string {
	switch {
	case err == nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return ""
	case apierrors.IsForbidden(err):
		return "you may not list and watch the " + what
	case apierrors.IsUnauthorized(err):
		return "the apiserver does not accept the credentials of the kubeconfig"
	case apierrors.IsNotFound(err):
		return "the API does not serve the " + what
	}
	return "the apiserver does not answer: " + err.Error()
}
