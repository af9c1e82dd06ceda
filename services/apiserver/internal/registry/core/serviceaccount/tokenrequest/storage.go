// Package tokenrequest serves the ServiceAccount with its /token: who creates a TokenRequest there gets a token.
package tokenrequest

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/authn/satoken"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var kind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// Issuer signs tokens.
type Issuer interface {
	Issue(b satoken.Bound, spec authenticationv1.TokenRequestSpec, now time.Time) (authenticationv1.TokenRequestStatus,
		error)
}

// Config is what /token needs beyond the accounts.
type Config struct {
	// Issuer signs the tokens; nil: there is no /token.
	Issuer Issuer
	// Objects finds what tokens are bound to.
	Objects satoken.Objects
	// Audiences are those of a token whose request names none.
	Audiences []string
}

// ServiceAccount is the ServiceAccount and, if tokens can be issued, its /token.
func ServiceAccount(c Config) rest.Entry {
	r := rest.Serve(serviceaccount.Resource)
	r.Register = func(s *runtime.Scheme) {
		s.AddTypeDefaultingFunc(&authenticationv1.TokenRequest{}, func(obj any) {
			Default(obj.(*authenticationv1.TokenRequest))
		})
	}
	if c.Issuer != nil {
		r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
			"serviceaccounts/token": func(s *rest.Storage) genericrest.Storage { return newStorage(s, c) },
		}
	}
	return r
}

// storage is /token: creating a TokenRequest there returns it with a token.
type storage struct {
	accounts *rest.Storage
	config   Config
	now      func() time.Time
}

var (
	_ genericrest.NamedCreater             = &storage{}
	_ genericrest.GroupVersionKindProvider = &storage{}
)

func newStorage(accounts *rest.Storage, config Config) *storage {
	return &storage{accounts: accounts, config: config, now: time.Now}
}

// New returns an empty TokenRequest.
func (s *storage) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy leaves the store, which belongs to the accounts, open.
func (s *storage) Destroy() {}

// GroupVersionKind tells that the object is a TokenRequest, although the path is in the core group.
func (s *storage) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return kind
}

// Create issues a token for the account called name.
func (s *storage) Create(ctx context.Context, name string, obj runtime.Object,
	validate genericrest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a TokenRequest, got %T", obj))
	}
	account, err := s.account(ctx, name)
	if err != nil {
		return nil, err
	}
	req := asked.DeepCopy()
	if err := s.prepare(req, account); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, req.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if len(req.Spec.Audiences) == 0 { // admission is to see whether the client asked for them
		req.Spec.Audiences = s.config.Audiences
	}
	bound, err := s.bound(ctx, account, req.Spec.BoundObjectRef)
	if err != nil {
		return nil, err
	}
	if req.Status, err = s.config.Issuer.Issue(bound, req.Spec, s.now()); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return req, nil
}

func (s *storage) account(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	obj, err := s.accounts.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ServiceAccount), nil
}

// prepare completes the request and checks it.
func (s *storage) prepare(req *authenticationv1.TokenRequest, account *corev1.ServiceAccount) error {
	if req.Name != "" && req.Name != account.Name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"metadata.name: the token is asked for %q, the path names the service account %q", req.Name, account.Name))
	}
	if req.Namespace != "" && req.Namespace != account.Namespace {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"metadata.namespace: the token is asked for in %q, the path names %q", req.Namespace, account.Namespace))
	}
	req.Name, req.Namespace, req.CreationTimestamp = account.Name, account.Namespace, metav1.NewTime(s.now())
	if errs := Validate(req); len(errs) > 0 {
		return apierrors.NewInvalid(kind.GroupKind(), account.Name, errs)
	}
	return nil
}

// bound finds the objects whose end will be the token's end.
func (s *storage) bound(ctx context.Context, account *corev1.ServiceAccount,
	ref *authenticationv1.BoundObjectReference) (satoken.Bound, error) {
	bound := satoken.Bound{ServiceAccount: account}
	if ref == nil {
		return bound, nil
	}
	if err := checkBound(ref); err != nil {
		return bound, apierrors.NewBadRequest(err.Error())
	}
	var err error
	var found types.UID
	resource := "pods"
	switch ref.Kind {
	case kindPod:
		found, err = s.bindPod(ctx, &bound, ref.Name)
	case kindSecret:
		resource = "secrets"
		if bound.Secret, err = s.config.Objects.Secret(ctx, account.Namespace, ref.Name); err == nil {
			found = bound.Secret.UID
		}
	case kindNode:
		resource = "nodes"
		if bound.Node, err = s.config.Objects.Node(ctx, ref.Name); err == nil {
			found = bound.Node.UID
		}
	}
	if err != nil {
		return bound, err
	}
	if err := checkUID(ref.UID, found); err != nil {
		return bound, apierrors.NewConflict(schema.GroupResource{Resource: resource}, ref.Name, err)
	}
	return bound, nil
}

// bindPod binds to a Pod that runs as the account, and names the Pod's Node if it has one.
func (s *storage) bindPod(ctx context.Context, bound *satoken.Bound, name string) (types.UID, error) {
	namespace := request.NamespaceValue(ctx)
	pod, err := s.config.Objects.Pod(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	if account := bound.ServiceAccount.Name; pod.Spec.ServiceAccountName != account {
		return "",
			apierrors.NewBadRequest(fmt.Sprintf(
				"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account))
	}
	bound.Pod = pod
	if pod.Spec.NodeName == "" {
		return pod.UID, nil
	}
	node, err := s.config.Objects.Node(ctx, pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		node, err = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}, nil
	}
	bound.Node = node
	return pod.UID, err
}
