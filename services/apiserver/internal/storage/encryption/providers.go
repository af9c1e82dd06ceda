package encryption

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/followedfile"
)

// follower is the name of the queue of changes of the file.
const follower = "encryption-provider-config"

// Providers encrypt and decrypt the objects of each resource. The zero value leaves all objects as they are.
type Providers struct {
	transformers value.ResourceTransformers
	// HealthChecks fail while a KMS plugin cannot be used.
	HealthChecks []healthz.HealthChecker
	// follow applies changes of the file until its context ends; nil if the file is not followed.
	follow func(context.Context)

	// ctx is that of the connections to KMS plugins.
	ctx     context.Context
	close   context.CancelFunc
	running contained.Group
}

var _ value.ResourceTransformers = &Providers{}

// Open reads the file, and connects to its KMS plugins; one that does not answer is a failing health check. The
// caller must Close what it gets.
func Open(options Options, serverID string) (*Providers, error) {
	p := &Providers{}
	p.ctx, p.close = context.WithCancel(context.Background())
	if options.ConfigFile == "" {
		return p, nil
	}
	loaded, unload := context.WithCancel(p.ctx)
	config, err := encryptionconfig.LoadEncryptionConfig(loaded, options.ConfigFile, options.Reload, serverID)
	if err != nil {
		unload()
		p.Close()
		return nil, wrong(options.ConfigFile, err)
	}
	if !options.Reload {
		contained.AtEnd(p.ctx, "leaving the providers of encryption", unload, nil)
		p.transformers, p.HealthChecks = encryptionconfig.StaticTransformers(config.Transformers), config.HealthChecks
	} else {
		// The library makes one health check of all where a file is followed.
		dynamic := encryptionconfig.NewDynamicTransformers(config.Transformers, config.HealthChecks[0], unload,
			config.KMSCloseGracePeriod)
		p.transformers, p.HealthChecks = dynamic, []healthz.HealthChecker{dynamic}
		p.follow = controller.NewDynamicEncryptionConfiguration(follower, options.ConfigFile, dynamic,
			config.EncryptionFileContentHash, serverID).Run
	}
	metrics.RecordEncryptionConfigLastConfigInfo(serverID, config.EncryptionFileContentHash)
	return p, nil
}

// wrong is one line about a file that cannot be followed.
func wrong(path string, err error) error {
	// The library's outermost words tell which of its steps failed.
	for inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "error while "); {
		err, inner = inner, errors.Unwrap(inner)
	}
	return followedfile.Wrong(path, err)
}

// TransformerForResource implements value.ResourceTransformers.
func (p *Providers) TransformerForResource(resource schema.GroupResource) value.Transformer {
	if p.transformers == nil {
		return identity.NewEncryptCheckTransformer()
	}
	return p.transformers.TransformerForResource(resource)
}

// Follow begins to take changes of the file, if that was asked for, until Close.
func (p *Providers) Follow() {
	if p.follow != nil {
		p.running.Go("following the file of encryption", func() { p.follow(p.ctx) }, nil)
	}
}

// Close ends the connections to KMS plugins: nothing can be read or written any more.
func (p *Providers) Close() {
	p.close()
	p.running.Wait()
}
