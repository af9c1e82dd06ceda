package credentialprovider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"keelson.dev/services/nodeagent/internal/volume"
)

// mostKept is how many answers are kept; the least used ones are forgotten first.
const mostKept = 1000

// tokenLifetime is the lifetime of the tokens that plugins are given.
const tokenLifetime = time.Hour

// Accounts are the service accounts of the node's Pods.
type Accounts interface {
	// ServiceAccount reads an account.
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	// ServiceAccountToken returns a token of the Pod's account that is bound to the Pod.
	ServiceAccountToken(ctx context.Context, pod *corev1.Pod, audience string, lifetime time.Duration) (volume.Token,
		error)
}

// Observer counts the runs of plugins.
type Observer interface {
	// PluginRan counts a run.
	PluginRan(plugin string, took time.Duration, ok bool)
}

// Config is what providers need.
type Config struct {
	Settings
	Log      *zap.Logger
	Accounts Accounts
	Observer Observer
}

// Providers ask plugins for credentials. Nil Providers have none. They are safe for concurrent use.
type Providers struct {
	Config
	// Hash identifies the content of the files; empty without any.
	Hash string

	all     []*provider
	ctx     context.Context //nolint:containedctx // the life of all runs: callers share them
	running sync.WaitGroup
	kept    *cache.LRUExpireCache
	// run and limit are those of package functions, unless a test replaces them.
	run   func(context.Context, call) ([]byte, error)
	limit time.Duration

	mu sync.Mutex // guards flights
	// flights are the runs under way, by what those who wait for them have in common: a key, or exactly one question.
	flights map[any]*pending
}

// provider is one plugin.
type provider struct {
	kubeletv1.CredentialProvider
	images []pattern
	env    []string
	// last is the kind of its last answer.
	last atomic.Pointer[credentialproviderv1.PluginCacheKeyType]
}

// Open reads the configuration. Plugins that run when ctx ends are ended; Wait returns when all of them have.
func Open(ctx context.Context, config Config) (*Providers, error) {
	read, err := config.read()
	if err != nil {
		return nil, err
	}
	p := &Providers{Config: config, Hash: read.hash, ctx: ctx, kept: cache.NewLRUExpireCache(mostKept), run: run,
		limit: runLimit, flights: map[any]*pending{}}
	for i := range read.providers {
		one := &provider{CredentialProvider: read.providers[i], env: os.Environ()}
		for _, text := range one.MatchImages {
			image, err := parsePattern(text)
			if err != nil {
				return nil, fmt.Errorf("%q %w", text, err)
			}
			one.images = append(one.images, image)
		}
		for _, env := range one.Env {
			one.env = append(one.env, env.Name+"="+env.Value)
		}
		p.all = append(p.all, one)
	}
	return p, nil
}

// Wait returns when no plugin runs any more.
func (p *Providers) Wait() {
	if p != nil {
		p.running.Wait()
	}
}

// matching returns the providers for an image, in the order of the configuration.
func (p *Providers) matching(image reference.Named) []*provider {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.all), func(one *provider) bool {
		return !slices.ContainsFunc(one.images, func(images pattern) bool { return images.matches(image) })
	})
}

// Credentials returns the credentials that the providers have for a Pod's image, in the order in which they are to be
// tried. The error, which has a sentence on each provider that gave none, does not make the others worthless.
func (p *Providers) Credentials(ctx context.Context, pod *corev1.Pod, image reference.Named) ([]Credential, error) {
	asked := p.matching(image)
	if len(asked) == 0 {
		return nil, nil
	}
	account := p.account(ctx, pod)
	answers, errs := make([]answered, len(asked)), make([]error, len(asked))
	var waiting sync.WaitGroup
	for i, one := range asked {
		waiting.Go(func() {
			answers[i], errs[i] = p.ask(ctx, one, inquiry{pod: pod, image: image, account: account})
			if errs[i] == nil && len(answers[i].auth) > 0 && len(pick(image, answers[i:i+1])) == 0 {
				errs[i] = errors.New("printed credentials for other images only")
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("credential provider %q %w", one.Name, errs[i])
			}
		})
	}
	waiting.Wait()
	return pick(image, answers), oneLine(errs)
}

// oneLine joins errors on one line; nil without any.
func oneLine(errs []error) error {
	var all error
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// Account returns the service account by which the Pod gets credentials for the image, the zero value if there are
// credentials for Pods without one; nil if no provider asks for accounts, or this one lacks what they require. No
// plugin is run.
func (p *Providers) Account(ctx context.Context, pod *corev1.Pod,
	image reference.Named) *kubeletv1beta1.ImagePullServiceAccount {
	asked := slices.DeleteFunc(p.matching(image), func(one *provider) bool { return one.TokenAttributes == nil })
	if len(asked) == 0 {
		return nil
	}
	account, err := p.account(ctx, pod)()
	if err != nil {
		return nil
	}
	for _, one := range asked {
		if account == nil && !*one.TokenAttributes.RequireServiceAccount ||
			account != nil && checkAccount(one.TokenAttributes, account) == nil {
			return recorded(account)
		}
	}
	return nil
}

// account returns a function that reads the Pod's service account once; nil if the Pod has none.
func (p *Providers) account(ctx context.Context, pod *corev1.Pod) func() (*corev1.ServiceAccount, error) {
	return sync.OnceValues(func() (*corev1.ServiceAccount, error) {
		if pod.Spec.ServiceAccountName == "" {
			return nil, nil
		}
		account, err := p.Accounts.ServiceAccount(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
		if err != nil {
			return nil, fmt.Errorf("cannot be given the service account: %w", err)
		}
		return account, nil
	})
}

// inquiry is a Pod that needs an image.
type inquiry struct {
	pod     *corev1.Pod
	image   reference.Named
	account func() (*corev1.ServiceAccount, error)
}

// ask returns a provider's answer, a kept one if there is any.
func (p *Providers) ask(ctx context.Context, one *provider, in inquiry) (answered, error) {
	request := credentialproviderv1.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "CredentialProviderRequest"}, Image: in.image.Name()}
	wants := one.TokenAttributes
	if wants == nil {
		got, err := p.share(ctx, one, ask(in.image, nil, nil, ""), request)
		return answered{answer: got}, err
	}
	account, err := in.account()
	if err != nil {
		return answered{}, err
	}
	if account == nil {
		if *wants.RequireServiceAccount {
			return answered{}, nil
		}
		got, err := p.share(ctx, one, ask(in.image, nil, nil, ""), request)
		return answered{answer: got, account: recorded(nil)}, err
	}
	if err := checkAccount(wants, account); err != nil {
		return answered{}, err
	}
	token, err := p.Accounts.ServiceAccountToken(ctx, in.pod, wants.ServiceAccountTokenAudience, tokenLifetime)
	if err != nil {
		return answered{}, fmt.Errorf("cannot be given a token for the audience %q: %w",
			wants.ServiceAccountTokenAudience, err)
	}
	request.ServiceAccountToken, request.ServiceAccountAnnotations = token.Value, annotationsFor(wants, account)
	got, err := p.share(ctx, one, ask(in.image, wants, account, token.Value), request)
	return answered{answer: got, account: recorded(account)}, err
}
