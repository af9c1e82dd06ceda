package subprocess

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTail bounds how much of a log is read for its last lines.
const maxTail = 64 << 10

// End returns the last bytes of a log file, at most limit and none from before the offset, and where in the file they
// begin.
func End(file string, offset, limit int64) (content []byte, begin int64, err error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("reading the log's size: %w", err)
	}
	begin = max(offset, info.Size()-limit, 0)
	if content, err = io.ReadAll(io.NewSectionReader(log, begin, limit)); err != nil {
		return nil, begin, fmt.Errorf("reading the log: %w", err)
	}
	return content, begin, nil
}

// Tail returns the last lines of a log file, none from before the offset.
func Tail(file string, offset int64, lines int) ([]string, error) {
	content, _, err := End(file, offset, maxTail)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(content), "\n")
	if text == "" {
		return nil, nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], nil
}
