// Package authorizationconfig says who is asked, and in which order, what a user may do, as an
// AuthorizationConfiguration or the flags that stand for one have it.
package authorizationconfig

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/followedfile"
)

// Config is what the configuration needs beside its options.
type Config struct {
	// Use puts a configuration in force, or says why it cannot.
	Use func(*apiserver.AuthorizationConfiguration) error
	// ServerID tells one apiserver from another in metrics.
	ServerID string
	Log      *zap.Logger
}

// Configuration is in force as the file, or the flags, have it. Make it with Open.
type Configuration struct {
	options Options
	config  Config
	file    *followedfile.File // nil where the flags say all
	// stays are the types that the file must keep.
	stays []apiserver.AuthorizerType

	ctx     context.Context //nolint:containedctx // That of what runs until Close.
	close   context.CancelFunc
	running contained.Group
}

// Open puts in force what the file or the flags say. The caller must Close what it gets.
func Open(options Options, config Config) (*Configuration, error) {
	c := &Configuration{options: options, config: config}
	c.ctx, c.close = context.WithCancel(context.Background())
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Configuration) open() error {
	if c.options.ConfigFile == "" {
		if c.options.isDefault() {
			return nil
		}
		if err := c.config.Use(c.options.configuration()); err != nil {
			return fmt.Errorf("--%s: %w", webhookFileFlag, err)
		}
		return nil
	}
	c.file = &followedfile.File{
		Flag: fileFlag, Path: c.options.ConfigFile, Kind: kind, Apply: c.apply,
		Succeeded: func(content []byte) {
			metrics.RecordAuthorizationConfigAutomaticReloadSuccess(c.config.ServerID, string(content))
		},
		Failed: func() { metrics.RecordAuthorizationConfigAutomaticReloadFailure(c.config.ServerID) },
		Log:    c.config.Log,
	}
	return c.file.Open(c.begin)
}

// begin puts in force what the file has at the start.
func (c *Configuration) begin(content []byte) error {
	if err := c.apply(c.ctx, content); err != nil {
		return err
	}
	metrics.RegisterMetrics()
	metrics.RecordAuthorizationConfigLastConfigInfo(c.config.ServerID, string(content))
	return nil
}

// apply puts the content of the file in force. What the first one had beside webhooks, later ones have too.
func (c *Configuration) apply(_ context.Context, content []byte) error {
	loaded, err := load(content, c.stays)
	if err != nil {
		return err
	}
	if err := c.config.Use(loaded); err != nil {
		return err
	}
	if c.stays == nil {
		c.stays = kept(loaded)
	}
	return nil
}

// Follow begins to take changes of the file, if there is one, until Close.
func (c *Configuration) Follow() {
	if c.file != nil {
		c.running.Go("following "+fileFlag, func() { c.file.Follow(c.ctx) }, nil)
	}
}

// Close ends the following of the file.
func (c *Configuration) Close() {
	c.close()
	c.running.Wait()
}
