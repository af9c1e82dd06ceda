package containerlog

import (
	"bytes"
	"errors"
	"time"
)

// Stream is the stream to which a container wrote a line.
type Stream string

// The two streams of a container.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// line is one entry of a log file in the format of CRI:
//
//	2016-10-06T00:17:09.669794202Z stdout F contents
//
// The tag F ends a line of the container; after P it continues in the next entry of the same stream.
type line struct {
	time    time.Time
	stream  Stream
	partial bool
	text    []byte
}

var errLine = errors.New("not a log entry: want <time> <stdout|stderr> <F|P> <text>")

// parse reads one entry without its line feed. Its text is a part of raw.
func parse(raw []byte) (line, error) {
	stamp, rest, ok := bytes.Cut(raw, []byte{' '})
	if !ok {
		return line{}, errLine
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return line{}, errLine
	}
	stream, rest, ok := bytes.Cut(rest, []byte{' '})
	if !ok || (Stream(stream) != Stdout && Stream(stream) != Stderr) {
		return line{}, errLine
	}
	tags, text, _ := bytes.Cut(rest, []byte{' '})
	tag, _, _ := bytes.Cut(tags, []byte{':'}) // further tags are for later versions of the format
	if string(tag) != "F" && string(tag) != "P" {
		return line{}, errLine
	}
	return line{time: at, stream: Stream(stream), partial: string(tag) == "P", text: text}, nil
}

// Options select what of a log is read.
type Options struct {
	// Tail is the number of lines at the end to begin with; negative means all.
	Tail int64
	// Since leaves out lines that were written before that time.
	Since time.Time
	// Timestamps puts the time before each line.
	Timestamps bool
	// Limit is the number of bytes after which to end; negative means no limit.
	Limit int64
	// Only leaves out the other stream; empty means both.
	Only Stream
	// Follow waits for further lines until the container has ended.
	Follow bool
}

// All reads the whole log.
var All = Options{Tail: -1, Limit: -1}

const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// formatter converts entries to output. It remembers per stream whether an entry continues the line of the previous
// one.
type formatter struct {
	options Options
	left    int64
	open    map[Stream]bool
}

func newFormatter(options Options) *formatter {
	return &formatter{options: options, left: options.Limit, open: map[Stream]bool{}}
}

// format returns what to write for one entry, and whether that reaches the limit.
func (f *formatter) format(entry line) (out []byte, done bool) {
	if entry.time.Before(f.options.Since) || (f.options.Only != "" && entry.stream != f.options.Only) {
		return nil, f.left == 0
	}
	if f.options.Timestamps && !f.open[entry.stream] {
		out = append(entry.time.AppendFormat(out, stampFormat), ' ')
	}
	out = append(out, entry.text...)
	if !entry.partial {
		out = append(out, '\n')
	}
	f.open[entry.stream] = entry.partial
	if f.left < 0 {
		return out, false
	}
	out = out[:min(int64(len(out)), f.left)]
	f.left -= int64(len(out))
	return out, f.left == 0
}
