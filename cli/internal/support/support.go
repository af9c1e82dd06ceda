// Package support collects what helps to find a fault of a mesh into one file that can be passed on: logs, states and
// metrics of the daemons, objects of the API and facts of the machine, without credentials and without the contents of
// Secrets and ConfigMaps.
package support

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// askLimit bounds each question, so that a daemon that hangs costs no more than its own answer.
	askLimit = 10 * time.Second
	// atOnce is how many questions are asked at the same time.
	atOnce = 8
	// sizeLimit bounds each file of a bundle, in bytes.
	sizeLimit = 8 << 20
)

// source is one file of a bundle.
type source struct {
	// name is its path in the bundle.
	name string
	// read returns the content, redacted and at most sizeLimit bytes, and a note for the index, such as what was left
	// out. What was read before an error stays in the bundle.
	read func(ctx context.Context) (content []byte, note string, err error)
}

// file is what a source has returned.
type file struct {
	name, note string
	content    []byte
	err        error
}

// absent reports whether the bundle does not hold the file.
func (f file) absent() bool { return f.err != nil && len(f.content) == 0 }

// Summary is what a bundle holds.
type Summary struct {
	// Files counts the files of the bundle, its index left out.
	Files int
	// Missing says, one sentence each, what could not be collected.
	Missing []string
}

// gather asks all sources, several at once, and returns their files in the order of the sources.
func gather(ctx context.Context, sources []source) []file {
	files := make([]file, len(sources))
	var wait sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, s := range sources {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			asked, cancel := context.WithTimeout(ctx, askLimit)
			defer cancel()
			files[i].name = s.name
			files[i].content, files[i].note, files[i].err = s.read(asked)
		})
	}
	wait.Wait()
	return files
}

// write writes the files and an index of them as an archive.
func write(out io.Writer, files []file, now time.Time) (Summary, error) {
	archive := newArchive(out, now)
	summary := Summary{}
	for _, f := range files {
		if f.err != nil {
			summary.Missing = append(summary.Missing, fmt.Sprintf("%s: %v", f.name, f.err))
		}
		if f.absent() {
			continue
		}
		if err := archive.add(f.name, f.content); err != nil {
			return summary, err
		}
		summary.Files++
	}
	if err := archive.add("index.txt", index(files, summary, now)); err != nil {
		return summary, err
	}
	return summary, archive.close()
}

// about heads the index.
const about = `Bundle of a Keelson mesh, collected by keel support.

Not in it: Secrets and ConfigMaps, which are not read; private keys and kubeconfigs; logs of containers. REDACTED
replaces the values of environment variables, commands, arguments, HTTP headers and driver parameters, annotations
of users, and what has the shape of a credential in any other text. Look through it before you pass it on: a
credential that has no such shape, in a log or a message, stays.
`

// index lists the files, what was left out of them, and what could not be collected.
func index(files []file, summary Summary, now time.Time) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nCollected %s.\n\n", about, now.UTC().Format(time.RFC3339))
	for _, f := range files {
		if f.absent() {
			continue
		}
		fmt.Fprintf(&text, "%10d  %s", len(f.content), f.name)
		if f.note != "" {
			fmt.Fprintf(&text, "  (%s)", f.note)
		}
		text.WriteByte('\n')
	}
	if len(summary.Missing) > 0 {
		text.WriteString("\nCould not be collected:\n")
		for _, missing := range slices.Sorted(slices.Values(summary.Missing)) {
			fmt.Fprintf(&text, "  %s\n", strings.ReplaceAll(missing, "\n", "\n    "))
		}
	}
	return []byte(text.String())
}
