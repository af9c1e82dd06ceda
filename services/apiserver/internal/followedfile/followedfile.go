// Package followedfile follows a file of configuration while the server runs: what is written there is put in force,
// and where that cannot be, what was in force holds on.
package followedfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/util/filesystem"
	"sigs.k8s.io/yaml"
)

// Interval is how often a file is looked at where nothing tells that it has changed. Only tests change it.
var Interval = time.Minute

// File is a file that is followed. It is read by Open, and followed from then on by Follow.
type File struct {
	// Flag is what names the file, Path where it is, Kind what it holds.
	Flag, Path, Kind string
	// Apply puts content in force, or says why it is not.
	Apply func(ctx context.Context, content []byte) error
	// Succeeded and Failed count.
	Succeeded func(content []byte)
	Failed    func()
	Log       *zap.Logger

	inForce []byte
}

// Open reads the file and has first put in force what it holds. The error is one line with the flag.
func (f *File) Open(first func(content []byte) error) error {
	content, err := read(f.Path, f.Kind)
	if err == nil {
		err = first(content)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", f.Flag, Wrong(f.Path, err))
	}
	f.inForce = content
	return nil
}

// read returns what the file holds, which is of the kind, or why it cannot be used.
func read(path, kind string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New("the file is empty")
	}
	var object any
	if err := yaml.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	fields, ok := object.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no YAML object of the kind %s", kind)
	}
	if is, _ := fields["kind"].(string); is != kind {
		return nil, fmt.Errorf("kind: must be %s, not %q", kind, is)
	}
	return content, nil
}

// Wrong is one line about a file that cannot be followed.
func Wrong(path string, err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if strings.Contains(text, path) {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", path, text)
}

// Follow applies what the file has until ctx ends. It retries what it could not apply each time it looks at the file:
// the cause may be a peer that was away.
func (f *File) Follow(ctx context.Context) {
	log := f.Log.With(zap.String("flag", "--"+f.Flag), zap.String("path", f.Path))
	filesystem.WatchUntil(ctx, Interval, f.Path, func() { f.look(ctx, log) },
		func(err error) { log.Warn("watching the file; it is looked at once a minute", zap.Error(err)) })
}

// look puts in force what the file has.
func (f *File) look(ctx context.Context, log *zap.Logger) {
	content, err := read(f.Path, f.Kind)
	if err == nil && bytes.Equal(content, f.inForce) {
		return
	}
	if err == nil {
		err = f.Apply(ctx, content)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		f.Failed()
		log.Error("the file is not in force; what it had before is", zap.Error(Wrong(f.Path, err)))
	default:
		f.inForce = content
		f.Succeeded(content)
		log.Info("the file has changed and is in force")
	}
}
